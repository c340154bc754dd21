#include "runtime/cuda/recorded_graphs.h"

#include <algorithm>
#include <utility>

namespace sylvite {

const cuda::Graph* RecordedGraphs::find(const DeviceArguments& arguments) {
  const auto found = std::ranges::find(graphs_, arguments, &Recorded::arguments);
  if (found == graphs_.end()) return nullptr;
  graphs_.splice(graphs_.begin(), graphs_, found);
  return &graphs_.front().graph;
}

bool RecordedGraphs::is_wanted(const DeviceArguments& arguments) {
  if (recordings_ >= most_recordings) return false;
  const auto found = std::ranges::find(met_, arguments);
  if (found != met_.end()) {
    met_.erase(found);
    ++recordings_;
    return true;
  }
  met_.push_front(arguments);
  if (met_.size() > most_kept) met_.pop_back();
  return false;
}

const cuda::Graph& RecordedGraphs::add(const DeviceArguments& arguments, cuda::Graph graph) {
  graphs_.push_front({arguments, std::move(graph)});
  if (graphs_.size() > most_kept) graphs_.pop_back();
  return graphs_.front().graph;
}

void RecordedGraphs::clear() {
  graphs_.clear();
  met_.clear();
}

}  // namespace sylvite
