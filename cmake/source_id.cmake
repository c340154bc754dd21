# sylvite_hash_sources(HASH SOURCES ROOT FOLDER...): sets HASH to a hash of every source below the folders of ROOT, and
# SOURCES to their paths.
function(sylvite_hash_sources hash_name sources_name root)
  set(hashes "")
  set(all "")
  foreach(folder ${ARGN})
    set(patterns "")
    foreach(extension cpp h c cuh)
      list(APPEND patterns ${root}/${folder}/*.${extension})
    endforeach()
    # A script cannot configure again.
    if(CMAKE_SCRIPT_MODE_FILE)
      file(GLOB_RECURSE sources ${patterns})
    else()
      file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${patterns})
    endif()
    foreach(source ${sources})
      file(SHA256 ${source} hash)
      string(APPEND hashes ${hash})
    endforeach()
    list(APPEND all ${sources})
  endforeach()
  string(SHA256 hash "${hashes}")
  set(${hash_name} ${hash} PARENT_SCOPE)
  set(${sources_name} ${all} PARENT_SCOPE)
endfunction()

# sylvite_source_id(TARGET NAME HEADER FOLDER...): defines std::string_view sylvite::NAME in TARGET, a hash of every
# source below the folders. Declared in HEADER. A change of any of them configures again, which takes a second.
function(sylvite_source_id target name header)
  sylvite_hash_sources(hash sources ${PROJECT_SOURCE_DIR} ${ARGN})
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources})
  set(generated ${PROJECT_BINARY_DIR}/embedded/${name}.cpp)
  file(CONFIGURE OUTPUT ${generated} CONTENT "#include \"${header}\"

const std::string_view sylvite::${name} = \"${hash}\";
")
  target_sources(${target} PRIVATE ${generated})
endfunction()
