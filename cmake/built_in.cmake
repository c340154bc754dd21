# Builds the version and configs/*.ini of the modes into the base library: an installed program needs no files beside
# it.
set(modes default reduce-overhead max-autotune)
set(mode_rows "")
foreach(mode ${modes})
  set(ini ${PROJECT_SOURCE_DIR}/configs/${mode}.ini)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ini})
  file(READ ${ini} text)
  string(APPEND mode_rows "    {\"${mode}\", R\"ini(${text})ini\"},\n")
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/built_in.cpp.in ${PROJECT_BINARY_DIR}/built_in.cpp @ONLY)
target_sources(sylvite_base PRIVATE ${PROJECT_BINARY_DIR}/built_in.cpp)
