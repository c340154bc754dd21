# sylvite_unite(TARGET SOURCE...): with CMAKE_UNITY_BUILD, up to eight sources of a folder are compiled as one, which reads
# headers once. File-local names are told apart within a folder (tests/layout checks it), not between folders.
function(sylvite_unite target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  foreach(source ${ARGN})
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    string(MAKE_C_IDENTIFIER ${folder} folder)
    math(EXPR batch "0${count_${folder}} / 8")
    math(EXPR count_${folder} "0${count_${folder}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${batch})
  endforeach()
endfunction()

# sylvite_stage(NAME LIBRARIES ...): a static library sylvite_NAME from every .cpp in the folder NAME and its rooms.
# The folder is globbed so that a new file in a stage needs no second edit here. What is compiled for another purpose
# (the launchers of exported models, the program that makes Halide's runtime) stays out.
function(sylvite_stage name)
  cmake_parse_arguments(stage "" "" "LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/(embed|halide_runtime)/")
  if(NOT sources)
    add_library(sylvite_${name} INTERFACE)
    target_link_libraries(sylvite_${name} INTERFACE ${stage_LIBRARIES})
    return()
  endif()
  add_library(sylvite_${name} STATIC ${sources})
  sylvite_unite(sylvite_${name} ${sources})
  target_include_directories(sylvite_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(sylvite_${name} PUBLIC ${stage_LIBRARIES} PRIVATE sylvite_compile_options)
endfunction()
