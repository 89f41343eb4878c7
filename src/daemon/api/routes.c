/* routes.c - everything that can be asked of the daemon. docs/api.md says what the answers mean. */
#include "daemon/api/api.h"
#include "daemon/http/shapes.h"
#include "daemon/http/route.h"

#define GET(p, i, s, q, a, h, also_, text)                                                      \
    {                                                                                           \
        .method = "GET", .path = (p), .id = (i), .summary = (text), .scope = (s), .query = (q), \
        .answer = (a), .status = 200, .handle = (h), .also = (also_)                            \
    }
#define GET_OTHER(p, i, s, q, t, h, also_, text)                                                \
    {                                                                                           \
        .method = "GET", .path = (p), .id = (i), .summary = (text), .scope = (s), .query = (q), \
        .type = (t), .status = 200, .handle = (h), .also = (also_)                              \
    }
#define POST(p, i, s, q, b, a, n, h, also_, text)                                                \
    {                                                                                            \
        .method = "POST", .path = (p), .id = (i), .summary = (text), .scope = (s), .query = (q), \
        .body = (b), .answer = (a), .status = (n), .handle = (h), .also = (also_)                \
    }

const struct route routes[] = {
    GET("/v1/status", "getStatus", SCOPE_READ, NULL, &schema_status, api_status, 0,
        "The daemon: version, mode, counts"),

    GET("/v1/jobs", "listJobs", SCOPE_READ, &schema_job_query, &schema_jobs, api_list_jobs, 0,
        "Jobs by id"),
    POST("/v1/jobs", "submitJob", SCOPE_SUBMIT, NULL, &schema_submit, &schema_job_whole, 201,
         api_submit_job, ROUTE_200 | ROUTE_409 | ROUTE_422,
         "A new job; it is on disk when the answer comes"),
    GET("/v1/jobs/{id}", "getJob", SCOPE_READ, &schema_job_ref, &schema_job_whole, api_show_job, 0,
        "One job"),
    POST("/v1/jobs/{id}/cancel", "cancelJob", SCOPE_SUBMIT, &schema_job_ref, NULL,
         &schema_job_whole, 200, api_cancel_job, ROUTE_409, "End a job for good"),
    POST("/v1/jobs/{id}/hold", "holdJob", SCOPE_SUBMIT, &schema_job_ref, NULL, &schema_job_whole,
         200, api_hold_job, ROUTE_409, "Keep a waiting job from starting"),
    POST("/v1/jobs/{id}/release", "releaseJob", SCOPE_SUBMIT, &schema_job_ref, NULL,
         &schema_job_whole, 200, api_release_job, ROUTE_409, "Let a held job wait again"),
    GET("/v1/jobs/{id}/explain", "explainJob", SCOPE_READ, &schema_explain_query, &schema_explain,
        api_explain_job, 0, "Why it is there, or waits: as recorded with the decision"),

    GET("/v1/services", "listServices", SCOPE_READ, &schema_service_query, &schema_services,
        api_list_services, 0, "Services by id"),
    GET("/v1/services/{id}", "getService", SCOPE_READ, &schema_job_ref, &schema_service_whole,
        api_show_service, 0, "One service: what it serves, its replicas, what places hold"),
    GET("/v1/services/{id}/endpoints", "listEndpoints", SCOPE_READ, &schema_job_ref,
        &schema_endpoints, api_list_endpoints, 0, "Where its requests go, for a balancer"),
    POST("/v1/services/{id}/scale", "scaleService", SCOPE_SUBMIT, &schema_job_ref, &schema_scale,
         &schema_service_whole, 200, api_scale_service, ROUTE_409,
         "Another rate to be ready for at first, or another number of GPUs"),

    GET("/v1/nodes", "listNodes", SCOPE_READ, NULL, &schema_nodes, api_list_nodes, 0, "Nodes"),
    POST("/v1/nodes/{name}/drain", "drainNode", SCOPE_OPERATE, &schema_node_ref, NULL, &schema_node,
         200, api_drain_node, ROUTE_409, "Start nothing more there"),
    POST("/v1/nodes/{name}/resume", "resumeNode", SCOPE_OPERATE, &schema_node_ref, NULL,
         &schema_node, 200, api_resume_node, ROUTE_409, "Start jobs there again"),
    GET("/v1/gpus", "listGpus", SCOPE_READ, &schema_page_query, &schema_gpus, api_list_gpus, 0,
        "GPUs with who is on them and what they draw"),

    GET("/v1/workloads", "listWorkloads", SCOPE_READ, &schema_page_query, &schema_workloads,
        api_list_workloads, 0, "What the catalog knows"),
    POST("/v1/workloads", "addWorkload", SCOPE_OPERATE, NULL, &schema_descriptor, &schema_workload,
         201, api_add_workload, 0, "Describe a workload; what was known stays"),
    GET("/v1/measurements", "listMeasurements", SCOPE_READ, &schema_measurement_query,
        &schema_cells, api_list_measurements, ROUTE_404, "What was measured, by cell"),
    POST("/v1/measurements", "addMeasurements", SCOPE_OPERATE, NULL, &schema_observations,
         &schema_taken, 200, api_add_measurements, 0, "Take in what was measured elsewhere"),
    GET("/v1/estimates", "listEstimates", SCOPE_READ, &schema_estimate_query, &schema_estimates,
        api_list_estimates, ROUTE_404, "How fast and how costly a workload is believed to be"),

    POST("/v1/commission", "chooseMeasurements", SCOPE_OPERATE, NULL, &schema_commission_ask,
         &schema_commission, 200, api_commission, ROUTE_404,
         "Which few measurements would teach most; changes nothing"),

    GET("/v1/plan", "getPlan", SCOPE_READ, NULL, &schema_plan, api_plan, 0,
        "What would happen now, without doing it"),
    GET("/v1/report", "getReport", SCOPE_READ, &schema_report_query, &schema_report, api_report, 0,
        "Energy, promises and prediction errors of a period"),
    GET("/v1/shadow", "getShadow", SCOPE_READ, &schema_period_query, &schema_shadow, api_shadow,
        ROUTE_404, "What would have been saved"),
    GET_OTHER("/v1/events", "streamEvents", SCOPE_READ, &schema_event_query, "text/event-stream",
              api_events, ROUTE_404, "What happens, as it happens"),

    GET("/healthz", "getHealth", SCOPE_NONE, NULL, &schema_health, api_health, 0, "The loop turns"),
    GET("/readyz", "getReady", SCOPE_NONE, NULL, &schema_ready, api_ready, 0,
        "Requests are served and the store takes them; 503 says what is missing"),
    GET_OTHER("/openapi.json", "getOpenapi", SCOPE_NONE, NULL, "application/json", api_openapi, 0,
              "This description"),
    GET_OTHER("/metrics", "getMetrics", SCOPE_READ, NULL, "text/plain; version=0.0.4", api_metrics,
              0, "Counts and gauges for Prometheus"),
};

const int n_routes = sizeof routes / sizeof *routes;
