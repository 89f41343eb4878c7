/* The looks of the page: on a screen, light and dark, wide and narrow; on paper. */
#include "study/report/inner.h"

#define PAGE_LIGHT                                                                       \
    "--bg:#fff;--ink:#1d1d1f;--soft:#555;--line:#cfcfcf;--shade:#f4f4f2;--link:#0b57a4;" \
    "--bad:#a40000;--bad-bg:#fdeceb;--ours:#eaf3fb"
#define PAGE_DARK                                                               \
    "--bg:#16181b;--ink:#e8e8e8;--soft:#b5b5b5;--line:#45484d;--shade:#202327;" \
    "--link:#8cc4ff;--bad:#ffb0a8;--bad-bg:#4a1f1c;--ours:#1b2c3c"

void report_style(struct report *r)
{
    PUT(r->out, "%s",
        "<style>\n"
        ":root{color-scheme:light dark;" PAGE_LIGHT "}\n"
        "@media screen and (prefers-color-scheme:dark){:root{" PAGE_DARK "}}\n"
        "body{margin:0 auto;padding:1rem;max-width:72rem;background:var(--bg);color:var(--ink);"
        "font:15px/1.5 system-ui,sans-serif}\n"
        "h1{font-size:1.7rem;margin:.5rem 0}h2{margin-top:2.5rem;border-bottom:1px solid "
        "var(--line)}\n"
        "h3{margin-top:1.6rem}a{color:var(--link)}p,ul,dl{max-width:50rem}\n"
        "code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}\n"
        "pre{background:var(--shade);padding:.7rem;overflow-x:auto}\n"
        ".box{background:var(--shade);border:1px solid var(--line);padding:.2rem 1rem;"
        "margin:1rem 0}\n"
        "dt{font-weight:600;margin-top:.5rem}dd{margin:0 0 0 1.2rem}\n"
        "nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;padding:0;list-style:none}\n"
        ".scroll{overflow-x:auto;max-width:100%}\n"
        "table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;"
        "margin:1rem 0}\n"
        "caption{text-align:left;padding:.3rem 0}\n"
        "th,td{padding:.25rem .4rem;border-bottom:1px solid var(--line);text-align:right;"
        "vertical-align:top}\n"
        "th[scope=row],th[scope=rowgroup],td.word{text-align:left;font-weight:normal}\n"
        "td,th[scope=row]{white-space:nowrap}\n"
        "thead th{vertical-align:bottom;background:var(--shade)}"
        "thead tr:first-child th:first-child{text-align:left}\n"
        "th[scope=colgroup]{text-align:center;border-left:1px solid var(--line)}\n"
        "th.group{background:var(--shade);font-weight:600}\n"
        "tr.ours{background:var(--ours)}tr.ours th{font-weight:700}\n"
        "tbody.oracles{border-top:2px solid var(--soft);font-style:italic}\n"
        "td.lost{background:var(--bad-bg)}.tag{color:var(--bad)}\n"
        "small,.note,figcaption{color:var(--soft)}\n"
        ".charts .scroll{flex:1 1 26rem;min-width:0}.warn{border-left:4px solid var(--bad);"
        "padding-left:.7rem}\n"
        ".finding{font-size:1.1rem}figure p.command{margin:.1rem 0 0;max-width:34rem}"
        ".command code{font-size:11px;color:var(--soft)}\n"
        "figure{margin:.8rem 0;min-width:0}figcaption{font-size:13px;margin-bottom:.3rem}\n"
        ".charts{display:flex;flex-wrap:wrap;gap:.4rem 1.2rem}\n"
        "@media screen{.scroll .plot{max-width:none}}\n"
        "@media print{body{max-width:none;padding:0;font-size:10pt}nav{display:none}\n"
        ".charts{gap:0 2%}.charts figure{flex:0 1 48%}.scroll{overflow:visible}"
        "table{font-size:7.5pt}th,td{padding:.1rem .25rem}\n"
        "tr,thead,figure,li,.box,table:not(.policies),.policies tbody{break-inside:avoid}"
        "h2,h3,caption,thead,tr:has(.group),h2+p,h3+p{break-after:avoid}"
        "h2+p,h3+p,.note{break-inside:avoid}.charts .scroll{flex:1 1 100%}"
        "thead{display:table-header-group}p{orphans:3;widows:3}\n"
        "td.lost,tr.ours,.box,thead th{print-color-adjust:exact;-webkit-print-color-adjust:exact}"
        "}\n");
    plot_style(r->out);
    PUT(r->out, "</style>\n");
}
