#pragma once
// What WorkerPool and `sylvite worker` say to each other: one CBOR object per message (autotune/message.h),
// one reply per request. Both ends must be the same build, so the format has no version: the worker begins by
// naming its own.

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "autotune/trial.h"

namespace sylvite {

struct CompileRequest {
  std::string kernel;     ///< Kernel::text
  std::string candidate;  ///< Candidate::to_string
  std::string target;
};

/// The worker's first message, before any request. The pool uses no worker of another build: that one's
/// objects have other names, and its kernels may compute something else.
struct WorkerHello {
  std::string build;  ///< build_id
};

struct CompileReply {
  std::string error;   ///< empty when it compiled
  std::string object;  ///< the object's bytes
  double seconds = 0;
};

/// See CompiledCandidate.
struct CandidateMessage {
  std::string candidate;
  std::string object;
};

/// See MeasureJob.
struct MeasureRequest {
  std::string kernel;
  std::string target;
  CandidateMessage reference;
  std::vector<CandidateMessage> candidates;
  Timing timing;
};

/// Sent before each candidate runs for the first time, so that a crash or a hang has a culprit, and once
/// more, with the number of candidates, before the timing.
struct MeasureNote {
  std::size_t running = 0;  ///< index into MeasureRequest::candidates
};

struct MeasurementReply {
  Verdict verdict = Verdict::ok;
  std::vector<double> samples_us;
  double error = 0;
  std::string message;
};

struct MeasureReply {
  std::vector<MeasurementReply> results;
  std::string error;  ///< not empty when the reference itself failed; then `results` is empty
};

using WorkerRequest = std::variant<CompileRequest, MeasureRequest>;
using WorkerReply = std::variant<WorkerHello, CompileReply, MeasureReply, MeasureNote>;

[[nodiscard]] std::string encode(const WorkerRequest& request);
[[nodiscard]] std::string encode(const WorkerReply& reply);
[[nodiscard]] WorkerRequest decode_request(std::string_view message);  ///< throws IoError when malformed
[[nodiscard]] WorkerReply decode_reply(std::string_view message);      ///< throws IoError when malformed

}  // namespace sylvite
