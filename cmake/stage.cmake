# sylvite_stage(NAME LIBRARIES ...): a static library sylvite_NAME from every .cpp in the folder NAME.
# The folder is globbed so that a new file in a stage needs no second edit here.
function(sylvite_stage name)
  cmake_parse_arguments(stage "" "" "LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${name}/*.cpp)
  if(NOT sources)
    add_library(sylvite_${name} INTERFACE)
    target_link_libraries(sylvite_${name} INTERFACE ${stage_LIBRARIES})
    return()
  endif()
  add_library(sylvite_${name} STATIC ${sources})
  target_include_directories(sylvite_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(sylvite_${name} PUBLIC ${stage_LIBRARIES} PRIVATE sylvite_compile_options)
endfunction()
