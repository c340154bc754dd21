set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Paths relative to the checkout let clones on one machine share compilations.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()

if(SYLVITE_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
endif()
if(SYLVITE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Warnings are errors for the project's own files only.
add_library(sylvite_compile_options INTERFACE)
# GCC 12 reports -Wrestrict falsely for `"literal" + std::string` (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(sylvite_compile_options INTERFACE -Wall -Wextra -Wshadow=local -Wno-restrict -Werror)
else()  # Clang warns of what GCC's own headers use
  target_compile_options(sylvite_compile_options INTERFACE -Wall -Wextra -Wno-deprecated-declarations -Werror)
endif()
# With sanitizers GCC 12 takes what std::regex moves for uninitialized.
if(SYLVITE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(sylvite_compile_options INTERFACE -Wno-maybe-uninitialized)
endif()
# GCC lets types of unnamed namespaces be members in main files only, which sources that are compiled as one are not.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(sylvite_compile_options INTERFACE -Wno-subobject-linkage)
endif()
