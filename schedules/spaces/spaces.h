#pragma once
// The rows of space_table(), one per space_NAME.cpp. Internal to schedules/.

#include <fmt/format.h>

#include "schedules/candidate.h"

namespace sylvite {

extern const Space matmul_amx_space;
extern const Space matmul_amx_activations_space;
extern const Space matmul_panels_space;
extern const Space matmul_activations_space;
extern const Space conv_blocked_space;
extern const Space depthwise_blocked_space;
extern const Space conv_rows_space;
extern const Space conv_winograd_space;
extern const Space attention_rows_space;
extern const Space contraction_space;
extern const Space normalization_rows_space;
extern const Space normalization_columns_space;
extern const Space reduction_rows_space;
extern const Space reduction_columns_space;
extern const Space whole_stages_space;
extern const Space layout_tiles_space;
extern const Space pointwise_space;
extern const Space reference_space;

extern const Space cuda_matmul_space;
extern const Space cublaslt_space;
extern const Space cudnn_space;
extern const Space cuda_conv_space;
extern const Space cuda_attention_space;
extern const Space cuda_norm_space;
extern const Space cuda_columns_space;
extern const Space cuda_transpose_space;
extern const Space cuda_pointwise_space;
extern const Space gpu_rows_space;
extern const Space gpu_columns_space;
extern const Space gpu_tiles_space;
extern const Space gpu_transpose_space;
extern const Space gpu_elements_space;
extern const Space gpu_reference_space;

/// A parameter's value at a point. Throws InternalError naming the parameter that the point lacks.
[[nodiscard]] std::int64_t get(const Point& point, const std::string& name);

/// Appends decisions to a schedule, one statement at a time.
class ScheduleWriter {
 public:
  /// Parses one line of the text form, so that spaces read like Halide.
  template <typename... Parts>
  void add(fmt::format_string<Parts...> format, Parts&&... parts) {
    add_line(fmt::format(format, std::forward<Parts>(parts)...));
  }
  void add_line(const std::string& line);
  [[nodiscard]] Schedule take() { return std::move(schedule_); }
  /// Makes one parallel loop of a stage's loops, the innermost first; its name. REQUIRES loops.
  std::string parallelize(const std::string& stage, const std::vector<std::string>& loops);

 private:
  Schedule schedule_;
};

/// `weight`, an input of the kernel, is fetched ahead: the directive of stream_ahead.h.
void write_stream(ScheduleWriter& writer, const Kernel& kernel, ValueId weight, const std::string& stage,
                  const std::string& loop, std::int64_t distance);

}  // namespace sylvite
