/* The settings in effect, printed; and which of them a running daemon can take over. */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/json.h"
#include "base/text/words.h"
#include "daemon/config/auth.h"
#include "daemon/config/inner.h"
#include "optimize/model/options.h"

/* ---- values ---- */

/* The field of 'c' that a setting is about. */
static const void *field_of(const struct setting *s, const struct config *c)
{
    return (const char *)c + s->offset;
}

static const char *text_of(const struct setting *s, const struct config *c)
{
    return *(const char *const *)field_of(s, c);
}

static bool is_text(const struct setting *s)
{
    return s->kind <= SETTING_TEXT;
}

/* ---- as lines ---- */

static void print_own(const struct setting *s, const struct config *c, struct buf *out)
{
    if (strcmp(s->name, "socket") == 0) {
        buf_puts(out, "socket          ");
        words_put(out, c->socket != NULL ? c->socket : "none");
        buf_printf(out, " mode=%04o scope=%s\n", c->socket_mode, scope_names[c->socket_scope]);
    } else if (strcmp(s->name, "listen") == 0 && c->listen != NULL) {
        buf_printf(out, "listen          %s", c->listen);
        if (c->cert != NULL) {
            buf_puts(out, " cert=");
            words_put(out, c->cert);
            buf_puts(out, " key=");
            words_put(out, c->key);
        }
        buf_puts(out, "\n");
    } else if (strcmp(s->name, "service_ports") == 0) {
        buf_printf(out, "service_ports   %d-%d\n", c->port_first, c->port_last);
    } else if (strcmp(s->name, "power") == 0) {
        buf_printf(out, "power           %s", s->words[c->power]);
        if (c->power == POWER_DCGM) {
            buf_puts(out, "=");
            words_put(out, c->dcgm_url);
        }
        buf_puts(out, "\n");
    }
}

static void print_setting(const struct setting *s, const struct config *c, struct buf *out)
{
    const void *field = field_of(s, c);
    const char *text = is_text(s) ? text_of(s, c) : NULL;

    if (s->kind == SETTING_OWN) {
        print_own(s, c, out);
        return;
    }
    if (s->kind == SETTING_SOCKET && text == NULL)
        text = "none";
    if (is_text(s) && text == NULL)
        return;
    buf_printf(out, "%-15s ", s->name);
    if (is_text(s))
        words_put(out, text);
    else if (s->kind == SETTING_FLAG)
        buf_puts(out, *(const bool *)field ? "yes" : "no");
    else if (s->kind == SETTING_CHOICE)
        buf_puts(out, s->words[*(const int *)field]);
    else if (s->kind == SETTING_WHOLE)
        words_put_number(out, (double)*(const long *)field);
    else
        words_put_number(out, *(const double *)field);
    buf_puts(out, "\n");
}

/* decide_s is a setting of ours, too, and is told there. */
static bool is_ours(const struct cluster_setting *set)
{
    return strcmp(set->key, "decide_s") == 0;
}

/* What it comes to, for people; GPUs that are yet to be found only the daemon knows. */
static void print_delay(const struct config *c, struct buf *out)
{
    const bool is_known = c->gpus == GPUS_DECLARED && c->executor == EXECUTOR_LOCAL;
    double delay_w = c->cluster.settings.delay_w, caps_w;
    int n;

    buf_puts(out, "# delay_w       ");
    if (delay_w < 0 && !is_known) {
        buf_printf(out, "auto: %g of the mean power cap of the GPUs; 'gogh plan' says what it is\n",
                   DELAY_SHARE);
        return;
    }
    if (delay_w < 0) {
        caps_w = cluster_caps_w(&c->cluster, &n);
        delay_w = options_usual_delay_w(caps_w, n);
        buf_printf(out, "auto: %.4g W; ", delay_w);
    }
    buf_printf(out, "an hour of a job's time is worth %.4g kWh\n", delay_w / 1000);
}

void config_print(const struct config *c, struct buf *out)
{
    const struct cluster *cl = &c->cluster;
    struct cluster_setting set;

    for (int i = 0; i < config_n_settings; i++)
        print_setting(&config_settings[i], c, out);
    for (int i = 0; i < c->n_allow; i++) {
        buf_printf(out, "allow           %s=", c->allow[i].is_group ? "group" : "user");
        words_put(out, c->allow[i].name);
        buf_printf(out, " %s\n", scope_names[c->allow[i].scope]);
    }
    for (int i = 0; cluster_setting(&cl->settings, i, &set); i++) {
        if (is_ours(&set))
            continue;
        buf_puts(out, "set             ");
        cluster_setting_put(&set, out);
    }
    print_delay(c, out);
    for (int i = 0; i < cl->n_types; i++)
        if (cl->is_described[i])
            buf_printf(out, "# gputype       %s: as in the file\n", cl->types[i].name);
    for (int i = 0; i < cl->n_workloads; i++)
        buf_printf(out, "# workload      %s: as in the file\n", cl->workloads[i].name);
    for (int i = 0; i < cl->n_nodes; i++) {
        buf_puts(out, "node            ");
        cluster_node_put(cl, &cl->nodes[i], out);
    }
}

/* ---- as JSON ---- */

static json_t *setting_json(const struct setting *s, const struct config *c)
{
    const void *field = field_of(s, c);

    if (strcmp(s->name, "socket") == 0)
        return json_pack("{s:o, s:o, s:s}", "path", json_text_or_null(c->socket), "mode",
                         json_sprintf("%04o", c->socket_mode), "scope",
                         scope_names[c->socket_scope]);
    if (strcmp(s->name, "listen") == 0)
        return c->listen == NULL
                   ? json_null()
                   : json_pack("{s:s, s:o, s:o}", "address", c->listen, "cert",
                               json_text_or_null(c->cert), "key", json_text_or_null(c->key));
    if (strcmp(s->name, "service_ports") == 0)
        return json_sprintf("%d-%d", c->port_first, c->port_last);
    if (strcmp(s->name, "power") == 0)
        return c->power == POWER_DCGM ? json_pack("{s:s}", "dcgm", c->dcgm_url)
                                      : json_string(s->words[c->power]);
    if (is_text(s))
        return json_text_or_null(text_of(s, c));
    if (s->kind == SETTING_FLAG)
        return json_boolean(*(const bool *)field);
    if (s->kind == SETTING_CHOICE)
        return json_string(s->words[*(const int *)field]);
    return s->kind == SETTING_WHOLE ? json_integer(*(const long *)field)
                                    : json_real(*(const double *)field);
}

static json_t *nodes_json(const struct cluster *c)
{
    json_t *nodes = json_array();

    for (int i = 0; i < c->n_nodes; i++) {
        json_t *types = json_array();

        for (int g = 0; g < c->nodes[i].n_gpus; g++)
            json_array_append_new(types, json_string(c->types[c->nodes[i].types[g]].name));
        json_array_append_new(nodes,
                              json_pack("{s:s, s:o}", "name", c->nodes[i].name, "gpus", types));
    }
    return nodes;
}

static json_t *names_json(const struct cluster *c, bool is_types)
{
    json_t *names = json_array();

    for (int i = 0; is_types && i < c->n_types; i++)
        if (c->is_described[i])
            json_array_append_new(names, json_string(c->types[i].name));
    for (int i = 0; !is_types && i < c->n_workloads; i++)
        json_array_append_new(names, json_string(c->workloads[i].name));
    return names;
}

static json_t *sets_json(const struct cluster_settings *s)
{
    struct cluster_setting set;
    json_t *o = json_object();

    for (int i = 0; cluster_setting(s, i, &set); i++)
        if (!is_ours(&set))
            json_object_set_new(o, set.key,
                                set.word != NULL ? json_string(set.word) : json_real(set.value));
    return o;
}

json_t *config_json(const struct config *c)
{
    json_t *o = json_object(), *allow = json_array();

    for (int i = 0; i < config_n_settings; i++)
        json_object_set_new(o, config_settings[i].name, setting_json(&config_settings[i], c));
    for (int i = 0; i < c->n_allow; i++)
        json_array_append_new(allow,
                              json_pack("{s:s, s:s}", c->allow[i].is_group ? "group" : "user",
                                        c->allow[i].name, "scope", scope_names[c->allow[i].scope]));
    json_object_set_new(o, "allow", allow);
    json_object_set_new(o, "node", nodes_json(&c->cluster));
    json_object_set_new(o, "gputype", names_json(&c->cluster, true));
    json_object_set_new(o, "workload", names_json(&c->cluster, false));
    json_object_set_new(o, "set", sets_json(&c->cluster.settings));
    return o;
}

/* ---- reloading ---- */

/* A socket's scope is who may do what; the rest of the line is where it is. */
static bool is_same_socket(const struct config *a, const struct config *b)
{
    return a->socket_mode == b->socket_mode && (a->socket == NULL) == (b->socket == NULL) &&
           (a->socket == NULL || strcmp(a->socket, b->socket) == 0);
}

/* Takes both references. */
static bool is_same_json(json_t *a, json_t *b)
{
    bool is = json_equal(a, b) == 1;

    json_decref(a);
    json_decref(b);
    return is;
}

static bool is_same(const struct setting *s, const struct config *a, const struct config *b)
{
    return strcmp(s->name, "socket") == 0 ? is_same_socket(a, b)
                                          : is_same_json(setting_json(s, a), setting_json(s, b));
}

static json_t *types_json(const struct cluster *c)
{
    json_t *list = json_array();

    for (int i = 0; i < c->n_types; i++) {
        const struct gpu_type *t = &c->types[i];
        const double figures[] = {
            t->peak_fp32_flops, t->peak_tf32_flops,   t->peak_fp16_flops, t->peak_fp8_flops,
            t->peak_int8_flops, t->bandwidth_bytes_s, t->mem_bytes,       t->launch_s,
            t->idle_w,          t->sleep_w,           t->cap_w,           t->limit_low_w,
            t->capability,
        };
        json_t *one = json_pack("[s, b]", t->name, c->is_described[i]);
        for (size_t k = 0; k < sizeof figures / sizeof *figures; k++)
            json_array_append_new(one, json_number_or_null(figures[k]));
        json_array_append_new(list, one);
    }
    return list;
}

static json_t *workloads_json(const struct cluster *c)
{
    json_t *list = json_array();

    for (int i = 0; i < c->n_workloads; i++) {
        const struct workload *w = &c->workloads[i];
        json_t *one = json_pack("[s, o, b, s?, s?, s?, s?, i]", w->name,
                                json_number_or_null(w->batch), w->is_inference, w->family, w->task,
                                w->dataset, precision_name(w->precision), w->needs_capability);
        for (int k = 0; k < WORKLOAD_FIGURES; k++)
            json_array_append_new(one, json_number_or_null(workload_number(w, k)));
        json_array_append_new(list, one);
    }
    return list;
}

/* The first kind of cluster line that differs; NULL: none does. */
static const char *other_lines(const struct cluster *a, const struct cluster *b)
{
    if (!is_same_json(nodes_json(a), nodes_json(b)))
        return "node";
    if (!is_same_json(types_json(a), types_json(b)))
        return "gputype";
    if (!is_same_json(workloads_json(a), workloads_json(b)))
        return "workload";
    return is_same_json(sets_json(&a->settings), sets_json(&b->settings)) ? NULL : "set";
}

int config_may_reload(const struct config *was, const struct config *now, struct err *e)
{
    const char *other = NULL;

    for (int i = 0; i < config_n_settings && other == NULL; i++)
        if (!config_settings[i].may_reload && !is_same(&config_settings[i], was, now))
            other = config_settings[i].name;
    if (other == NULL)
        other = other_lines(&was->cluster, &now->cluster);
    if (other == NULL)
        return 0;
    if (config_line(now, other) > 0)
        return err_set(e, EINVAL, "%s:%d: '%s' has changed, and that needs a restart", now->path,
                       config_line(now, other), other);
    return err_set(e, EINVAL, "%s: '%s' has changed, and that needs a restart",
                   now->path != NULL ? now->path : "the configuration", other);
}
