#pragma once
// Numbers of a program as expressions of the sizes.

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "runtime/export/exported_program.h"

namespace sylvite {

/// Thread safety: one thread at a time. Both must live as long.
class FittedNumbers {
 public:
  FittedNumbers(ExtentFit& fit, const std::vector<ProgramCase>& cases) : fit_(fit), cases_(cases) {}

  [[nodiscard]] const std::vector<ProgramCase>& cases() const { return cases_; }
  template <typename Get>
  [[nodiscard]] std::vector<std::int64_t> values(const Get& get) const {
    std::vector<std::int64_t> values;
    values.reserve(cases_.size());
    for (const ProgramCase& each : cases_) values.push_back(get(each));
    return values;
  }
  /// The expression that has these values in the cases; nothing where there is none.
  [[nodiscard]] std::optional<Extent> find(const std::vector<std::int64_t>& values) {
    return fit_.of(values);
  }
  /// What `get` says of each case. Throws UnsupportedError that names `what` where there is no such expression.
  template <typename Get>
  [[nodiscard]] Extent of(const Get& get, const std::string& what) {
    const std::optional<Extent> found = find(values(get));
    if (!found) refuse(what);
    return *found;
  }
  [[noreturn]] static void refuse(const std::string& what) {
    throw UnsupportedError("'{}' depends on the sizes in another way than by products", what);
  }
  /// The same of several numbers, as many in each case.
  template <typename Get>
  [[nodiscard]] std::vector<Extent> dims(const Get& get, const std::string& what) {
    std::vector<Extent> result;
    const std::size_t rank = get(cases_[0]).size();
    result.reserve(rank);
    for (std::size_t axis = 0; axis < rank; ++axis)
      result.push_back(of([&](const ProgramCase& each) { return get(each).at(axis); }, what));
    return result;
  }

 private:
  ExtentFit& fit_;
  const std::vector<ProgramCase>& cases_;
};

}  // namespace sylvite
