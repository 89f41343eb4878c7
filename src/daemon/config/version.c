/* The one file that is compiled with the version, so that a new one rebuilds nothing else. */
#include "daemon/config/version.h"

const char gogh_version[] = GOGH_VERSION;
