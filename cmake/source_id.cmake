# sylvite_source_id(TARGET NAME HEADER FOLDER...): defines std::string_view sylvite::NAME in TARGET, a hash of every
# source below the folders. Declared in HEADER. A change of any of them configures again, which takes a second.
function(sylvite_source_id target name header)
  set(hashes "")
  foreach(folder ${ARGN})
    set(patterns "")
    foreach(extension cpp h c cuh)
      list(APPEND patterns ${PROJECT_SOURCE_DIR}/${folder}/*.${extension})
    endforeach()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${patterns})
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
