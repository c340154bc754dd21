#include "runtime/worker.h"

#include "autotune/build_id.h"
#include "autotune/message.h"
#include "autotune/worker_protocol.h"
#include "base/clock.h"
#include "runtime/measure.h"
#include "schedules/compile_apart.h"

namespace sylvite {

namespace {

constexpr int message_descriptor = 3;

CompileReply serve(const CompileRequest& request) {
  const double start = steady_seconds();
  CompileReply reply;
  try {
    Kernel kernel = parse_kernel(request.kernel);
    reply.object = compile_apart(kernel, Candidate::parse(request.candidate), request.target);
  } catch (const std::exception& error) {
    reply.error = *error.what() == '\0' ? "the compiler failed without a message" : error.what();
  }
  reply.seconds = steady_seconds() - start;
  return reply;
}

}  // namespace

int worker_main() {
  MessageChannel channel(message_descriptor);
  if (!channel.send(encode(WorkerReply(WorkerHello{std::string(build_id)})))) return 1;
  Measurer measurer;
  while (auto message = channel.receive(/*timeout=*/-1)) {
    WorkerRequest request = decode_request(*message);
    WorkerReply reply;
    if (const auto* compile = std::get_if<CompileRequest>(&request)) {
      reply = serve(*compile);
    } else {
      reply = measurer.measure(std::get<MeasureRequest>(request), [&](std::size_t running) {
        static_cast<void>(
            channel.send(encode(WorkerReply(MeasureNote{running}))));  // a lost pool shows below
      });
    }
    if (!channel.send(encode(reply))) return 1;  // the pool is gone
  }
  return 0;
}

}  // namespace sylvite
