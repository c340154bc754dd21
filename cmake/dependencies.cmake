# Every dependency, found in one place. Debian's packages, and PyPI wheels under SYLVITE_DEPS.
if(POLICY CMP0167)
  cmake_policy(SET CMP0167 NEW)
endif()

file(GLOB site_packages "${SYLVITE_DEPS}/venv/lib/python3*/site-packages")
if(NOT site_packages)
  message(FATAL_ERROR "no Python packages under ${SYLVITE_DEPS}: run ./dev setup first")
endif()
list(GET site_packages 0 SYLVITE_SITE_PACKAGES)

# Found by its folder: the wheel's other entry point, under the venv's share/, asks for Python's headers.
set(HalideHelpers_DIR "${SYLVITE_SITE_PACKAGES}/halide/lib64/cmake/HalideHelpers")
find_package(Halide 21 REQUIRED COMPONENTS shared PATHS "${SYLVITE_SITE_PACKAGES}/halide/lib64/cmake/Halide"
             NO_DEFAULT_PATH)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Boost REQUIRED COMPONENTS program_options)
find_package(SQLite3 REQUIRED)
if(NOT SYLVITE_FUZZ)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
endif()
find_package(Protobuf REQUIRED)

# LLVM comes as static libraries next to Halide's own hidden copy; only the object linker is used.
find_package(LLVM 19.1 REQUIRED CONFIG PATHS /usr/lib/llvm-19/lib/cmake/llvm NO_DEFAULT_PATH)
target_include_directories(LLVMSupport SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
add_library(sylvite_orc INTERFACE)
target_include_directories(sylvite_orc SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_link_libraries(sylvite_orc INTERFACE LLVMOrcJIT LLVMOrcTargetProcess LLVMJITLink LLVMSupport)

# The official ONNX schema, compiled at build time from the pinned wheel.
set(onnx_proto_dir ${PROJECT_BINARY_DIR}/onnx_schema)
set(onnx_schemas onnx/onnx-ml onnx/onnx-data)
list(TRANSFORM onnx_schemas APPEND .proto OUTPUT_VARIABLE onnx_protos)
list(TRANSFORM onnx_schemas REPLACE "(.+)" "${onnx_proto_dir}/\\1.pb.cc" OUTPUT_VARIABLE onnx_sources)
list(TRANSFORM onnx_schemas REPLACE "(.+)" "${onnx_proto_dir}/\\1.pb.h" OUTPUT_VARIABLE onnx_headers)
list(TRANSFORM onnx_protos PREPEND ${SYLVITE_SITE_PACKAGES}/ OUTPUT_VARIABLE onnx_proto_files)
file(MAKE_DIRECTORY ${onnx_proto_dir}/onnx)
add_custom_command(
  OUTPUT ${onnx_sources} ${onnx_headers}
  COMMAND ${Protobuf_PROTOC_EXECUTABLE} --proto_path=${SYLVITE_SITE_PACKAGES} --cpp_out=${onnx_proto_dir}
          ${onnx_protos}
  DEPENDS ${onnx_proto_files}
  VERBATIM)
add_library(sylvite_onnx_proto STATIC ${onnx_sources})
set_target_properties(sylvite_onnx_proto PROPERTIES POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF)
target_include_directories(sylvite_onnx_proto SYSTEM PUBLIC ${onnx_proto_dir} ${onnx_proto_dir}/onnx)
target_link_libraries(sylvite_onnx_proto PUBLIC protobuf::libprotobuf)
