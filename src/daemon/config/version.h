/* version.h - the version of this build, "0.1.0". */
#ifndef DAEMON_CONFIG_VERSION_H
#define DAEMON_CONFIG_VERSION_H

extern const char gogh_version[];

#endif
