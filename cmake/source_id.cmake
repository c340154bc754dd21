# sylvite_source_id(TARGET NAME HEADER STAGE...): defines std::string_view sylvite::NAME in TARGET, a hash of the stages'
# sources. Declared in HEADER. A change of any of them configures again, which takes a second.
function(sylvite_source_id target name header)
  set(hashes "")
  foreach(stage ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${stage}/*.cpp ${PROJECT_SOURCE_DIR}/${stage}/*.h
         ${PROJECT_SOURCE_DIR}/${stage}/*/*.cuh)
    foreach(source ${sources})
      file(SHA256 ${source} hash)
      string(APPEND hashes ${hash})
    endforeach()
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources})
  endforeach()
  string(SHA256 hash "${hashes}")
  set(generated ${PROJECT_BINARY_DIR}/embedded/${name}.cpp)
  file(CONFIGURE OUTPUT ${generated} CONTENT "#include \"${header}\"

const std::string_view sylvite::${name} = \"${hash}\";
")
  target_sources(${target} PRIVATE ${generated})
endfunction()
