# Script: installs the build in BUILD, compiles each installed header by itself with COMPILER, builds examples/cpp with
# find_package(Sylvite) alone, and runs it.
set(work ${BUILD}/install_test)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGV}\nfailed: ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix)
file(GLOB headers RELATIVE ${work}/prefix/include ${work}/prefix/include/sylvite/*.h)
list(LENGTH headers count)
if(count LESS 5)
  message(FATAL_ERROR "installed headers: ${headers}")
endif()
foreach(header ${headers})
  file(WRITE ${work}/header.cpp "#include <${header}>\n")
  run(${COMPILER} -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I ${work}/prefix/include ${work}/header.cpp)
endforeach()

run(${CMAKE_COMMAND} -S ${SOURCE}/examples/cpp -B ${work}/build -DCMAKE_PREFIX_PATH=${work}/prefix)
run(${CMAKE_COMMAND} --build ${work}/build)

set(ENV{XDG_CACHE_HOME} ${work}/cache)
run(${work}/build/example ${SOURCE}/tests/data/models/squeezenet1_1.onnx)
if(NOT output MATCHES "f32\\[1,1000\\]")
  message(FATAL_ERROR "the example printed: ${output}")
endif()
run(${work}/prefix/bin/sylvite --version)
file(REMOVE_RECURSE ${work})
