# sylvite_embed(TARGET FILE NAME HEADER): defines std::string_view sylvite::embedded::NAME in TARGET with the bytes of
# FILE. Declare it in HEADER.
function(sylvite_embed target file name header)
  set(source ${PROJECT_BINARY_DIR}/embedded/${name}.cpp)
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${file} -DOUTPUT=${source} -DNAME=${name} -DHEADER=${header}
            -P ${PROJECT_SOURCE_DIR}/cmake/write_embedded.cmake
    DEPENDS ${file} ${PROJECT_SOURCE_DIR}/cmake/write_embedded.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${source})
endfunction()

# Halide's runtime, built once; kernels are compiled without it.
function(sylvite_embed_halide_runtime target)
  add_executable(make_halide_runtime ${PROJECT_SOURCE_DIR}/runtime/halide_runtime/make_halide_runtime.cpp)
  target_link_libraries(make_halide_runtime PRIVATE Halide::Halide)
  set(object ${PROJECT_BINARY_DIR}/embedded/halide_runtime.o)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/embedded
    COMMAND make_halide_runtime ${object}
    DEPENDS make_halide_runtime
    VERBATIM)
  sylvite_embed(${target} ${object} halide_runtime runtime/embedded.h)
endfunction()

# The launchers of exported models, compiled without the instrumentation that a sanitizer build has: exported models
# link to nothing of it.
function(sylvite_embed_launcher target)
  set(folder ${PROJECT_SOURCE_DIR}/runtime/export/embed)
  foreach(file launcher launcher_arguments launcher_cuda launcher_cuda_run launcher_cuda_states weights_file sized_program first_places)
    add_library(sylvite_${file} OBJECT ${folder}/${file}.c)
    target_compile_options(sylvite_${file} PRIVATE -std=c11 -O2 -Wall -Wextra -Werror -fno-sanitize=all)
  endforeach()
  target_compile_options(sylvite_first_places PRIVATE -O3 -mavx2)  # beside kernels, which need as much
  sylvite_embed(${target} $<TARGET_OBJECTS:sylvite_launcher> launcher_object runtime/embedded.h)
  sylvite_embed(${target} $<TARGET_OBJECTS:sylvite_launcher_arguments> launcher_arguments_object runtime/embedded.h)
  sylvite_embed(${target} $<TARGET_OBJECTS:sylvite_launcher_cuda> cuda_launcher_object runtime/embedded.h)
  sylvite_embed(${target} $<TARGET_OBJECTS:sylvite_launcher_cuda_run> cuda_launcher_run_object runtime/embedded.h)
  sylvite_embed(${target} $<TARGET_OBJECTS:sylvite_launcher_cuda_states> cuda_launcher_states_object runtime/embedded.h)
  sylvite_embed(${target} $<TARGET_OBJECTS:sylvite_weights_file> weights_file_object runtime/embedded.h)
  sylvite_embed(${target} $<TARGET_OBJECTS:sylvite_first_places> first_places_object runtime/embedded.h)
  sylvite_embed(${target} $<TARGET_OBJECTS:sylvite_sized_program> sized_program_object runtime/embedded.h)
  sylvite_embed(${target} ${folder}/sized_program.h sized_program_header runtime/embedded.h)
  sylvite_embed(${target} ${folder}/launcher.h launcher_header runtime/embedded.h)
  sylvite_embed(${target} ${folder}/launcher_cuda.h cuda_launcher_header runtime/embedded.h)
  sylvite_embed(${target} ${folder}/model_types.h model_types runtime/embedded.h)
  sylvite_embed(${target} ${folder}/model.h.in model_header runtime/embedded.h)
  sylvite_embed(${target} ${folder}/model_open.h.in model_header_open runtime/embedded.h)
  sylvite_embed(${target} ${folder}/model_functions_open.c.in model_functions_open runtime/embedded.h)
  sylvite_embed(${target} ${folder}/model_cuda.h.in cuda_model_header runtime/embedded.h)
  sylvite_embed(${target} ${folder}/model_functions.c.in model_functions runtime/embedded.h)
  sylvite_embed(${target} ${folder}/model_functions_cuda.c.in cuda_model_functions runtime/embedded.h)
  sylvite_embed(${target} ${folder}/package_config.cmake.in package_config runtime/embedded.h)
  sylvite_embed(${target} ${folder}/uncompiled_tables.cmake.in uncompiled_tables runtime/embedded.h)
endfunction()

# The CUDA C++ texts that templates are made of.
function(sylvite_embed_cuda_sources target)
  foreach(name card hopper pointwise vector matmul matmul_tiles matmul_once matmul_exact matmul_results warps attention attention_scores attention_f32 attention_slopes attention_gradient
          attention_gradient_hopper attention_warps
          norm image_norm softmax_columns rows row_folds row_walks fold_keys folds columns concat transpose depthwise depthwise_gradient line_gradient grouped pool_gradient place scatter_rows scatter_folds top_k)
    sylvite_embed(${target} ${PROJECT_SOURCE_DIR}/schedules/cuda/${name}.cuh cuda_${name} schedules/cuda/sources.h)
  endforeach()
endfunction()
