# What `cpack -G TGZ` and `cpack -G DEB` make of an installation: a tarball that runs wherever it is unpacked, and a
# package for the Debian that it is made on.
set(CPACK_PACKAGE_NAME sylvite)
set(CPACK_PACKAGE_VENDOR "Sylvite maintainers")
set(CPACK_PACKAGE_CONTACT "Sylvite maintainers <maintainers@sylvite.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Compiles ONNX models for the machine at hand")
set(CPACK_PACKAGE_DESCRIPTION "Imports ONNX graphs, finds fast Halide schedules by measuring candidates, remembers the winners in
SQLite, and runs them or exports them as a library. Holds the command, a C++ library and its headers.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME sylvite-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_STRIP_FILES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
# Debian's libraries become dependencies; Halide's comes along.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
get_target_property(halide_library Halide::Halide IMPORTED_LOCATION_RELEASE)
get_filename_component(halide_folder "${halide_library}" DIRECTORY)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${halide_folder})
include(CPack)
