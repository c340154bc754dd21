# What `cmake --install` puts in place: the command, the shared library with all stages that it runs on, the public
# headers, Halide's library beside it, and a package for find_package(Sylvite). It may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(sylvite_private_libdir ${CMAKE_INSTALL_LIBDIR}/sylvite)

# Only the project's own symbols are visible: the static libraries inside (LLVM) cannot clash with a user's.
set(stages sylvite_base sylvite_frontend sylvite_lowering sylvite_schedules sylvite_autotune sylvite_runtime)
list(JOIN stages "," stage_list)
add_library(sylvite_shared SHARED ${PROJECT_SOURCE_DIR}/cmake/empty.cpp)
add_library(Sylvite::sylvite ALIAS sylvite_shared)
target_link_libraries(sylvite_shared PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,${stage_list}>")
# Two fifths of what LLVM's libraries bring along is never called.
target_link_options(sylvite_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exported_symbols.map
                                           -Wl,--gc-sections)
target_include_directories(sylvite_shared PUBLIC
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
target_compile_features(sylvite_shared PUBLIC cxx_std_20)
set_target_properties(sylvite_shared PROPERTIES
  OUTPUT_NAME sylvite
  EXPORT_NAME sylvite
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exported_symbols.map
  INSTALL_RPATH "$ORIGIN/sylvite")
file(RELATIVE_PATH libdir_of_command ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set_target_properties(sylvite PROPERTIES INSTALL_RPATH "$ORIGIN/${libdir_of_command}")

# The component `runtime` is what programs need, and what a Python wheel holds.
install(TARGETS sylvite RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
install(TARGETS sylvite_shared EXPORT SylviteTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)
install(FILES $<TARGET_FILE:Halide::Halide> DESTINATION ${sylvite_private_libdir} COMPONENT runtime)
install(DIRECTORY include/sylvite DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Sylvite)
install(EXPORT SylviteTargets NAMESPACE Sylvite:: DESTINATION ${package_dir})
configure_package_config_file(cmake/SylviteConfig.cmake.in ${PROJECT_BINARY_DIR}/SylviteConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/SylviteConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/SylviteConfig.cmake ${PROJECT_BINARY_DIR}/SylviteConfigVersion.cmake
  DESTINATION ${package_dir})
