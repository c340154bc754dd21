#pragma once
// A candidate as Halide's own text of its lowered code.

#include <Halide.h>

#include <regex>
#include <string>

#include "base/files.h"
#include "lowering/algorithms/algorithm.h"
#include "schedules/candidate.h"
#include "schedules/directives/own_directives.h"
#include "tests/support/temporary_folder.h"

namespace sylvite {

/// Without the numbers that Halide adds to names, which go on from one text to the next.
inline std::string lowered_text(const Kernel& kernel, const Candidate& candidate, const std::string& target) {
  Algorithm algorithm = build_algorithm(kernel, candidate.form);
  candidate.schedule.apply(algorithm);
  Halide::Pipeline pipeline(algorithm.outputs);
  add_own_passes(candidate.schedule, algorithm, target, pipeline);
  const TemporaryFolder folder;
  const std::string path = folder.file("stmt.txt");
  std::vector<Halide::Argument> arguments(algorithm.inputs.begin(), algorithm.inputs.end());
  arguments.insert(arguments.end(), algorithm.sizes.begin(), algorithm.sizes.end());
  pipeline.compile_to_lowered_stmt(path, arguments, Halide::Text, Halide::Target(target));
  const std::string text = std::regex_replace(read_file(path), std::regex(R"(\$\d+|_\d+\b)"), "");
  return std::regex_replace(text, std::regex(R"(\bt\d+\b)"), "t");  // common subexpressions
}

/// How often a part stands in a text.
inline int count_in(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace sylvite
