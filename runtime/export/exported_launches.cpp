#include "runtime/export/exported_launches.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/rounding.h"

namespace sylvite {
namespace {

using cuda::BytesArgument;
using cuda::MapArgument;
using cuda::NotedArgument;
using cuda::NotedLaunch;
using cuda::PointerArgument;
using cuda::SymbolicAddress;

/// One launch, as it is in each case.
class LaunchWriter {
 public:
  LaunchWriter(FittedNumbers& numbers, std::size_t index, std::size_t part, const WeightPlaces& weights,
               const LaunchSamples& samples)
      : numbers_(numbers),
        index_(index),
        part_(part),
        weights_(weights),
        samples_(samples),
        name_(numbers.cases()[0].plan->launches[index].name) {}

  [[nodiscard]] ExportedDeviceLaunch write() {
    const NotedLaunch& first = launch(numbers_.cases()[0]);
    check([&](const ProgramCase& each) { return is_alike(launch(each), first); });
    ExportedDeviceLaunch result = {name_, first, {}, {}};
    for (std::size_t axis = 0; axis < 3; ++axis) result.grid.push_back(blocks(first.shape, axis));
    if (first.shape.most > 0) result.grid[0] = min(result.grid[0], Extent(std::int64_t{first.shape.most}));
    for (std::size_t i = 0; i < first.arguments.size(); ++i) {
      const auto is_same_kind = [&](const ProgramCase& each) {
        return launch(each).arguments[i].index() == first.arguments[i].index();
      };
      check(is_same_kind);
      argument_ = i;
      result.parameters.push_back(
          std::visit([&](const auto& given) { return parameter(given); }, first.arguments[i]));
    }
    return result;
  }

 private:
  [[nodiscard]] const NotedLaunch& launch(const ProgramCase& each) const {
    return each.notes->launches[index_][part_];
  }
  template <typename Argument>
  [[nodiscard]] const Argument& argument(const ProgramCase& each) const {
    return std::get<Argument>(launch(each).arguments[argument_]);
  }
  template <typename Get>
  [[nodiscard]] Extent number(const Get& get) {
    return numbers_.of(get, name_);
  }
  template <typename Holds>
  void check(const Holds& holds) const {
    if (!std::ranges::all_of(numbers_.cases(), holds))
      throw UnsupportedError("'{}' is launched in another way at other sizes", name_);
  }

  [[nodiscard]] static bool is_alike(const NotedLaunch& one, const NotedLaunch& other) {
    LaunchShape shape = one.shape;
    std::ranges::copy(other.shape.grid, shape.grid);
    shape.steps = other.shape.steps;
    return one.library == other.library && one.function == other.function &&
           one.arguments.size() == other.arguments.size() && shape == other.shape &&
           (one.image == other.image || (one.image && other.image && *one.image == *other.image));
  }

  [[nodiscard]] Extent blocks(const LaunchShape& first, std::size_t axis) {
    if (axis == 0 && !first.steps.empty()) return counted(first.steps);
    return computed([&](const NotedLaunch& each) { return std::int64_t{each.shape.grid[axis]}; });
  }
  /// As the template counts them.
  [[nodiscard]] Extent counted(const std::vector<BlockStep>& steps) {
    using Kind = BlockStep::Kind;
    check([&](const ProgramCase& each) {
      return std::ranges::equal(launch(each).shape.steps, steps, [](const BlockStep& a, const BlockStep& b) {
        return a.kind == b.kind && (a.kind == Kind::extent || a.number == b.number);
      });
    });
    std::vector<Extent> stack;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].kind == Kind::extent) {
        stack.push_back(number([&](const ProgramCase& each) { return launch(each).shape.steps[i].number; }));
      } else if (steps[i].kind == Kind::parts) {
        stack.back() = ceil_div(stack.back(), steps[i].number);
      } else {
        const Extent last = stack.back();
        stack.pop_back();
        stack.back() *= last;
      }
    }
    return stack.back();
  }

  /// The same of kernels that Halide compiled, whose host code computes numbers: what is right at all samples.
  template <typename Get>
  [[nodiscard]] Extent computed(const Get& get) {
    const auto in_case = [&](const ProgramCase& each) { return get(launch(each)); };
    const std::vector<LaunchSamples::Sample>& samples = samples_.all();
    std::vector<std::int64_t> wanted;
    wanted.reserve(samples.size());
    for (const LaunchSamples::Sample& sample : samples) wanted.push_back(get(sample.launches.at(part_)));
    const auto is_right = [&](const Extent& expression) {
      for (std::size_t i = 0; i < samples.size(); ++i)
        if (expression.at(samples[i].sizes) != wanted[i]) return false;
      return true;
    };
    const std::optional<Extent> found = numbers_.find(numbers_.values(in_case));
    if (found && is_right(*found)) return *found;
    if (samples.empty()) FittedNumbers::refuse(name_);
    const BoundLaunch& bound = numbers_.cases()[0].bindings.launches[index_];
    for (const Extent& whole : wholes(bound.inputs, bound.arguments.size()))
      for (const std::int64_t each : parts_of(whole, samples, wanted))
        for (const Extent& parts : {ceil_div(whole, each), floor_div(whole, each), ceil_div(whole, each) - 1})
          if (is_right(parts)) return parts;
    FittedNumbers::refuse(name_);
  }
  /// Products of neighbouring dims of results, the longest first.
  [[nodiscard]] std::vector<Extent> wholes(std::size_t first_result, std::size_t end_result) {
    std::vector<Extent> found;
    for (std::size_t argument = first_result; argument < end_result; ++argument) {
      const std::vector<Extent> dims = numbers_.dims(
          [&](const ProgramCase& each) { return each.bindings.launches[index_].arguments[argument].stored; },
          name_);
      for (std::size_t count = dims.size(); count > 0; --count)
        for (std::size_t first = 0; first + count <= dims.size(); ++first) {
          Extent product(1);
          for (std::size_t axis = first; axis < first + count; ++axis) product *= dims[axis];
          if (!product.is_known()) found.push_back(product);
        }
    }
    return found;
  }
  /// How large parts of the whole may be, of which there are about as many as wanted, rounded up or down.
  [[nodiscard]] static std::vector<std::int64_t> parts_of(const Extent& whole,
                                                          const std::vector<LaunchSamples::Sample>& samples,
                                                          const std::vector<std::int64_t>& wanted) {
    std::int64_t least = 1, most = 1 << 20;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (wanted[i] < 0) return {};
      const std::int64_t all = whole.at(samples[i].sizes);
      least = std::max(least, all / (wanted[i] + 1));
      if (wanted[i] > 1) most = std::min(most, all / (wanted[i] - 1));
    }
    std::vector<std::int64_t> found;
    for (auto each = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(least)));
         each <= most; each *= 2)
      found.push_back(each);
    constexpr std::int64_t few = 64;
    if (most - least < few)
      for (std::int64_t each = least; each <= most; ++each) found.push_back(each);
    return found;
  }

  [[nodiscard]] ExportedParameter parameter(const BytesArgument& first) {
    const auto is_same = [&](const ProgramCase& each) { return argument<BytesArgument>(each) == first; };
    if (std::ranges::all_of(numbers_.cases(), is_same)) return first;
    check([&](const ProgramCase& each) {
      return argument<BytesArgument>(each).size() == first.size() && is_integer(first);
    });
    // A number of 64 bits begins with that of 32: processors with such cards are little-endian.
    return std::vector<ExportedPlace>{{std::nullopt, 0, computed([&](const NotedLaunch& each) {
                                         return integer_of(
                                             std::get<BytesArgument>(each.arguments.at(argument_)));
                                       })}};
  }
  [[nodiscard]] static bool is_integer(const BytesArgument& bytes) {
    return bytes.size() == sizeof(std::int32_t) || bytes.size() == sizeof(std::int64_t);
  }
  [[nodiscard]] static std::int64_t integer_of(const BytesArgument& bytes) {
    std::int32_t narrow = 0;
    std::int64_t wide = 0;
    if (bytes.size() == sizeof(wide)) {
      std::memcpy(&wide, bytes.data(), sizeof(wide));
      return wide;
    }
    std::memcpy(&narrow, bytes.data(), sizeof(narrow));
    return narrow;
  }

  [[nodiscard]] ExportedParameter parameter(const PointerArgument& first) {
    check([&](const ProgramCase& each) {
      return argument<PointerArgument>(each).words.size() == first.words.size();
    });
    std::vector<ExportedPlace> places;
    for (std::size_t i = 0; i < first.words.size(); ++i) {
      const auto word = [&](const ProgramCase& each) { return argument<PointerArgument>(each).words[i]; };
      const bool is_address = cuda::is_address(first.words[i]);
      check([&](const ProgramCase& each) { return cuda::is_address(word(each)) == is_address; });
      if (is_address) {
        places.push_back(place([&](const ProgramCase& each) { return cuda::decode_address(word(each)); }));
        continue;
      }
      places.push_back({std::nullopt, 0, number([&](const ProgramCase& each) {
                          return static_cast<std::int64_t>(word(each));
                        })});
    }
    return places;
  }

  [[nodiscard]] ExportedParameter parameter(const MapArgument& first) {
    check([&](const ProgramCase& each) { return is_alike(argument<MapArgument>(each).map, first.map); });
    if (first.map.argument < 0) return std::nullopt;
    const auto map = [&](const ProgramCase& each) -> const CudaTensorMap& {
      return argument<MapArgument>(each).map;
    };
    ExportedMap result = {first.map, {}, {}, {}, {}};
    result.place = place([&](const ProgramCase& each) {
      SymbolicAddress address = argument<MapArgument>(each).address;
      address.offset += static_cast<std::uint64_t>(map(each).offset);
      return address;
    });
    for (std::size_t i = 0; i < 4; ++i) {
      result.dims.push_back(number([&](const ProgramCase& each) { return map(each).dims[i]; }));
      result.box.push_back(number([&](const ProgramCase& each) { return std::int64_t{map(each).box[i]}; }));
      if (i < 3)
        result.pitches.push_back(number([&](const ProgramCase& each) { return map(each).pitches[i]; }));
    }
    return result;
  }
  [[nodiscard]] static bool is_alike(const CudaTensorMap& one, const CudaTensorMap& other) {
    CudaTensorMap numbers = one;
    numbers.offset = other.offset;
    std::ranges::copy(other.dims, numbers.dims);
    std::ranges::copy(other.pitches, numbers.pitches);
    std::ranges::copy(other.box, numbers.box);
    return numbers == other;
  }

  /// Of an address that is in the same region in all cases.
  template <typename Get>
  [[nodiscard]] ExportedPlace place(const Get& get) {
    const SymbolicAddress first = get(numbers_.cases()[0]);
    check([&](const ProgramCase& each) {
      const SymbolicAddress here = get(each);
      return here.region == first.region && here.number == first.number;
    });
    const Extent offset =
        number([&](const ProgramCase& each) { return static_cast<std::int64_t>(get(each).offset); });
    if (first.region != cuda::Region::weight) return {first.region, first.number, offset};
    return {first.region, 0, weights_.at(first.number) + offset};
  }

  FittedNumbers& numbers_;
  std::size_t index_;
  std::size_t part_;
  const WeightPlaces& weights_;
  const LaunchSamples& samples_;
  std::string name_;
  std::size_t argument_ = 0;  ///< the one that is written
};

}  // namespace

std::vector<ExportedDeviceLaunch> exported_launches(FittedNumbers& numbers, std::size_t index,
                                                    const WeightPlaces& weights, const SampledCode& device) {
  const std::vector<NotedLaunch>& first = numbers.cases()[0].notes->launches[index];
  for (const ProgramCase& each : numbers.cases())
    if (each.notes->launches[index].size() != first.size())
      throw UnsupportedError("'{}' has other launches at other sizes", each.plan->launches[index].name);
  const bool is_computed =
      std::ranges::any_of(first, [](const NotedLaunch& each) { return each.shape.steps.empty(); });
  const LaunchSamples samples(numbers, index, *device.code,
                              is_computed ? device.sizes : std::vector<SymbolValues>());
  std::vector<ExportedDeviceLaunch> launches;
  launches.reserve(first.size());
  for (std::size_t part = 0; part < first.size(); ++part)
    launches.push_back(LaunchWriter(numbers, index, part, weights, samples).write());
  return launches;
}

}  // namespace sylvite
