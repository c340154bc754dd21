# Script: packs the build in BUILD as CPack does, unpacks and moves the tarball, compiles each of its headers by itself with
# COMPILER, builds examples/cpp with find_package(Sylvite) alone, and runs that and the command, under another name, too.
set(work ${BUILD}/install_test)
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})
get_filename_component(cmake_folder ${CMAKE_COMMAND} DIRECTORY)
set(cpack ${cmake_folder}/cpack)
set(model ${SOURCE}/tests/data/models/squeezenet1_1.onnx)
set(ENV{XDG_CACHE_HOME} ${work}/cache)

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output
                  WORKING_DIRECTORY ${work})
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGV}\nfailed: ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# run, and what it prints must match `pattern`.
function(expect pattern)
  run(${ARGN})
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "${ARGN}\nprinted no ${pattern}:\n${output}")
  endif()
endfunction()

# What was unpacked into `prefix` is used where it lies.
function(check_command prefix)
  expect("^sylvite [0-9.]+\n$" ${prefix}/bin/sylvite --version)
  expect("Conv" ${prefix}/bin/sylvite info ${model})
  file(SIZE ${prefix}/bin/sylvite bytes)
  if(bytes GREATER 3000000 AND NOT SANITIZED)
    message(FATAL_ERROR "the command has ${bytes} bytes: does it hold the library a second time?")
  endif()
endfunction()

run(${cpack} -G TGZ --config ${BUILD}/CPackConfig.cmake -B ${work}/tgz)
file(GLOB tarball ${work}/tgz/*.tar.gz)
run(${CMAKE_COMMAND} -E tar xf ${tarball})
file(GLOB unpacked ${work}/sylvite-*)
set(prefix "${work}/moved elsewhere")
file(RENAME ${unpacked} ${prefix})
check_command(${prefix})
expect("[0-9]+ launches" ${prefix}/bin/sylvite run ${model} --random-weights 0)

# A copy by another name finds its workers: itself.
file(RENAME ${prefix}/bin/sylvite ${prefix}/bin/renamed)
expect("[1-9][0-9]* trials?" ${prefix}/bin/renamed tune ${model} --random-weights 0 --budget 3s)
file(RENAME ${prefix}/bin/renamed ${prefix}/bin/sylvite)

file(GLOB headers RELATIVE ${prefix}/include ${prefix}/include/sylvite/*.h)
list(LENGTH headers count)
if(count LESS 5)
  message(FATAL_ERROR "installed headers: ${headers}")
endif()
foreach(header ${headers})
  file(WRITE ${work}/header.cpp "#include <${header}>\n")
  run(${COMPILER} -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I ${prefix}/include ${work}/header.cpp)
endforeach()
run(${CMAKE_COMMAND} -S ${SOURCE}/examples/cpp -B ${work}/build -DCMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${work}/build)
expect("f32\\[1,1000\\]" ${work}/build/example ${model})

# Packed without xz, which takes a minute.
find_program(dpkg_deb dpkg-deb)
if(dpkg_deb)
  run(${cpack} -G DEB --config ${BUILD}/CPackConfig.cmake -B ${work}/deb -D CPACK_DEBIAN_COMPRESSION_TYPE=none)
  file(GLOB package ${work}/deb/*.deb)
  expect("Depends: .*libc6.*libprotobuf" ${dpkg_deb} --info ${package})
  run(${dpkg_deb} -x ${package} ${work}/unpacked)
  check_command(${work}/unpacked/usr)
endif()
file(REMOVE_RECURSE ${work})
