#pragma once
// Kernels for a range of sizes, found by comparing kernels that were lowered at different sizes: two that differ in
// extents alone are cases of one open kernel, which is compiled once. No pass of lowering needs to know of symbols; what
// a pass does at some sizes and not at others makes kernels of another structure, which are other kernels.

#include <cstdint>
#include <optional>

#include "lowering/plan/kernel.h"

namespace sylvite {

/// What extents one kernel is for.
enum class Sharing : std::uint8_t {
  on_host,  ///< those of images in blocks of channels from the least on (pixel_class; from two pixels where neither windows nor
            ///< vectors go along them), and any number of such images, else those of one size_class
  of_first,  ///< the same, of the first of two kernels, whatever the second is for
  of_device_class,  ///< those of one device_class; any from two on that are only read, or of elements that are made one by one
  on_device,  ///< any from two on, whose schedules are chosen among variants; keys of attention: those of one device_class
};

/// The open kernel of which both are cases: every extent in which they differ is a symbol s0, s1, ..., one for each pair
/// of values. Its hints are the sizes of `first`. A symbol's range is the class of its two values; what is padded or sliced off
/// may be any number. nullopt when they differ in
/// more than extents, or not at all, or when two extents have no class in common. On the host, lines and pixels of images are
/// from `fewest` on where both have more.
[[nodiscard]] std::optional<Kernel> generalize(const Kernel& first, const Kernel& second,
                                               Sharing sharing = Sharing::on_host,
                                               std::int64_t fewest = INT64_MAX);

/// `kernel` as a case of `open`; nullopt when it is none.
[[nodiscard]] std::optional<Kernel> as_case(const Kernel& open, const Kernel& kernel);
/// The sizes at which `open` computes what `kernel` does, whether it is for them or not; nullopt where there are none.
[[nodiscard]] std::optional<Dims> sizes_of_case(const Kernel& open, const Kernel& kernel);
/// The case of `open` at these sizes, one for each symbol in the order of its table; nullopt where it is not for them.
[[nodiscard]] std::optional<Kernel> case_at(const Kernel& open, const Dims& sizes);
/// The open kernel of a case with the case's sizes as its hints, for which schedules are chosen: another kernel for the same sizes.
[[nodiscard]] Kernel hinted_here(const Kernel& found);
/// The same, and for images with at least as many lines and pixels as the case has, up to a tile's: tiles may be as long.
[[nodiscard]] Kernel narrowed_here(const Kernel& found);
/// Is `open` for all sizes of `wide`, which differs from it in hints and ranges alone?
[[nodiscard]] bool is_as_wide(const Kernel& open, const Kernel& wide);

/// What extents may share a kernel: tiles and vectors that fit the least fit all. 1 is by itself, as much is simpler
/// there; so are extents below 16, which fill no tile.
struct SizeClass {
  std::int64_t low = 1;
  std::int64_t high = 1;  ///< INT64_MAX: no bound
  bool operator==(const SizeClass&) const = default;
};
[[nodiscard]] SizeClass size_class(std::int64_t extent);
/// The same of the pixels of a line of an image, whose tiles are as long as the least of the class: they fit all that is longer.
[[nodiscard]] SizeClass pixel_class(std::int64_t extent);
/// The same of the lines of an image, of which tiles have four at most.
[[nodiscard]] SizeClass line_class(std::int64_t extent);

/// The same of any extent on a device, as far as launches are made for about as many threads. Ranges mostly end at powers of two,
/// which are the largest of their classes.
[[nodiscard]] SizeClass device_class(std::int64_t extent);

/// Equal for kernels of one skeleton where all their extents have the same classes on the host.
[[nodiscard]] std::string classes_text(const Kernel& kernel);

/// Equal for kernels that may be cases of one open kernel: the text without extents.
[[nodiscard]] std::string skeleton(const Kernel& kernel);

}  // namespace sylvite
