#pragma once
// The version of these headers, for the preprocessor of C and C++. The one place that says it.

#define SYLVITE_VERSION_MAJOR 0
#define SYLVITE_VERSION_MINOR 1
#define SYLVITE_VERSION_PATCH 0

/// One number to compare, e.g. #if SYLVITE_VERSION >= 200 for 0.2.0.
#define SYLVITE_VERSION (SYLVITE_VERSION_MAJOR * 10000 + SYLVITE_VERSION_MINOR * 100 + SYLVITE_VERSION_PATCH)
