#pragma once
// What programs at further sizes of a model will need, made in a thread of low priority while those that are there run.

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "runtime/background.h"
#include "runtime/session.h"

namespace sylvite {

/// What is known of kernels beyond those that programs have loaded.
struct KnownKernels {
  Objects objects;                                  ///< of sizes that had no program when they were compiled
  std::unordered_map<std::string, Choice> choices;  ///< of plans that were imported, by the texts of kernels

  void note_choices(const Plan& plan, const std::vector<Choice>& chosen);
  /// Those of kernels that none is known for.
  void note_new(const Plan& plan, const std::vector<Choice>& chosen);
  void note_objects(const std::vector<Choice>& chosen);
};

/// As long as it lives, the thread of an Ahead does nothing but compile: kernels, menu and plans are the caller's. Of the variants of a
/// kernel those are taken that are compiled. Movable.
class AheadTurn {
 public:
  AheadTurn() = default;  ///< of none
  AheadTurn(std::unique_lock<std::mutex> lock, KernelMenu& menu, std::shared_ptr<const KnownKernels> kernels);
  ~AheadTurn();
  AheadTurn(AheadTurn&&) = default;
  AheadTurn& operator=(AheadTurn&&) = delete;

 private:
  std::unique_lock<std::mutex> lock_;
  KernelMenu* menu_ = nullptr;
};

/// Kernels and plans, made ahead of runs. Thread safety: one thread at a time, beside its own.
class Ahead {
 public:
  /// `kernels` are what it adds to, beside what the model's menu and plans learn; `first` has what is loaded. `compiled` tells how
  /// many kernels were compiled for the programs that are there, and in how many seconds: about as many are compiled at most, and
  /// none where those were in the cache, as another process had this model.
  /// REQUIRES a model with a menu, whose setup measures nothing.
  Ahead(OpenModel model, std::shared_ptr<KnownKernels> kernels, std::shared_ptr<const Program> first,
        const CompileReport& compiled);
  ~Ahead() = default;
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  /// Until all is made, or `stop` asks for an end.
  void make(const std::stop_token& stop);
  /// The same in a thread.
  void start();
  [[nodiscard]] bool is_done() const { return is_done_; }
  void wait() const { thread_->wait(); }  ///< REQUIRES start
  /// Not so in a child made by fork: there what it adds to is in no known state.
  [[nodiscard]] bool is_mine() const { return !thread_ || thread_->is_mine(); }

  [[nodiscard]] AheadTurn take_turn();
  /// What was made since the last call: counts and warnings.
  [[nodiscard]] CompileReport take_report();

 private:
  enum class Kind { telling, between, plan, choice, variant };
  struct Step {
    Kind kind;
    Sizes sizes;  ///< none for a choice
  };
  [[nodiscard]] bool is_wanted(Kind kind) const;
  void make_step(const Step& step, const std::stop_token& stop);
  void make_kernels(const Sizes& sizes, const std::stop_token& stop);
  void make_plan(const Sizes& sizes);
  void choose_variants(const std::stop_token& stop);
  [[nodiscard]] std::unique_lock<std::mutex> own_turn();

  OpenModel model_;
  std::shared_ptr<KnownKernels> kernels_;
  std::shared_ptr<const Program> first_;
  std::deque<Step> steps_;
  int most_;  ///< kernels to compile
  int left_;
  double budget_;         ///< seconds for imports, of sizes between others and of plans each
  double between_ = 0;    ///< seconds used
  double planning_ = 0;   ///< likewise
  int told_in_turn_ = 0;  ///< sizes whose plans were known, one behind the other
  std::vector<std::shared_ptr<const Plan>> plans_;
  std::vector<Sizes> sizes_of_plans_;
  std::mutex turn_;
  std::atomic<int> waiting_ = 0;  ///< for their turn
  std::mutex report_mutex_;
  CompileReport report_;
  std::atomic<bool> is_done_ = false;
  std::optional<Background<std::monostate>> thread_;  ///< last: it ends before what it uses
};

}  // namespace sylvite
