#include "python/native/program.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>

#include "autotune/worker_pool.h"
#include "base/error.h"
#include "python/native/captured.h"
#include "python/native/device_run.h"
#include "python/native/holder.h"
#include "python/native/host_run.h"
#include "python/native/returned.h"
#include "python/native/settings.h"
#include "python/native/write_counts.h"
#include "python/native/writes.h"
#include "runtime/background.h"
#include "runtime/build.h"
#include "runtime/report.h"

namespace sylvite::python {
namespace {

/// What runs and what is told when a graph cannot be compiled, and what makes views.
struct Tools {
  Ref fallback;
  Ref failed;
  Ref view;
};

using MakingProgram = Background<std::unique_ptr<CapturedProgram>>;

struct Captured {
  Captured() { all().insert(this); }
  ~Captured() {
    stop();
    all().erase(this);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  static std::set<Captured*>& all() {  ///< guarded by the GIL
    static std::set<Captured*> captured;
    return captured;
  }
  void stop() {  ///< what is being made
    if (making.empty()) return;
    const WithoutGil others_run;  // what is made may let go of tensors, which takes the GIL
    making.clear();
  }

  std::shared_ptr<const Setup> setup;
  CapturedGraph graph;
  std::unique_ptr<OpenCapture> open;
  std::vector<Result> results;
  std::vector<Write> writes;
  std::set<std::size_t> shown;  ///< inputs that results show, or that are written
  Tools tools;
  std::optional<DeviceTools> device;  ///< of a graph on a GPU
  /// Per combination of sizes; nullptr where torch runs the graph.
  std::map<Sizes, std::unique_ptr<CapturedProgram>> programs;
  /// With compile.first_answer = fast: torch runs the graph meanwhile.
  std::map<Sizes, std::unique_ptr<MakingProgram>> making;
  std::map<Sizes, std::uint64_t> last_call;
  std::uint64_t calls = 0;
  WriteCounts counts;
  std::map<std::size_t, int> changes;                      ///< of parameters that were constants
  std::map<std::size_t, GivenParameter> on_host;           ///< parameters that lie on a device, read once
  std::vector<std::unique_ptr<CapturedProgram>> replaced;  ///< captured graphs, or what is made, need them
  CompileReport report;
  std::unique_ptr<std::mutex> running = std::make_unique<std::mutex>();
};
using CapturedObject = Holder<std::unique_ptr<Captured>>;
using SetupObject = Holder<std::shared_ptr<const Setup>>;

PyObject*& program_type() {
  static PyObject* type = nullptr;
  return type;
}
PyObject*& setup_type() {
  static PyObject* type = nullptr;
  return type;
}

/// A parameter may be a constant until it has changed so often.
constexpr int most_changes = 2;

Sizes sizes_of(const Captured& captured, const std::vector<PyObject*>& items) {
  Sizes sizes;
  sizes.reserve(captured.graph.symbols.size());
  for (const CapturedSymbol& symbol : captured.graph.symbols) {
    PyObject* item = items.at(symbol.input);
    sizes.push_back(symbol.axis < 0 ? to_integer(item) : borrow_view(item).shape[symbol.axis]);
  }
  return sizes;
}

bool holds(Captured& captured, const TakenParameter& taken, const std::vector<PyObject*>& items) {
  const dlpack::DlTensor view = borrow_view(items.at(taken.input));
  return view.address() == taken.data &&
         captured.counts.of(captured.graph.inputs, taken.input, items, view) == taken.version;
}

bool parameters_hold(Captured& captured, const CapturedProgram& program,
                     const std::vector<PyObject*>& items) {
  bool hold = true;
  for (const TakenParameter& taken : *program.taken) {
    if (holds(captured, taken, items)) continue;
    ++captured.changes[taken.input];
    hold = false;
  }
  return hold;
}

/// Programs whose packed weights are still right: equal addresses may hold other numbers by now.
Relatives up_to_date(Captured& captured, const std::vector<PyObject*>& items, bool take_turns) {
  Relatives relatives{{}, take_turns};
  std::map<TakenParameters, bool> are_right;  // most have the same
  for (const auto& [sizes, program] : captured.programs) {
    if (program == nullptr) continue;
    const auto [found, is_new] = are_right.try_emplace(program->taken, false);
    if (is_new)
      found->second = std::ranges::all_of(
          *program->taken, [&](const TakenParameter& taken) { return holds(captured, taken, items); });
    if (found->second) relatives.programs.push_back(&program->built.program);
  }
  return relatives;
}

/// Its value in the CPU's memory, which of one on a device is copied when it has changed.
GivenParameter given_parameter(Captured& captured, std::size_t number, PyObject* item, std::int64_t version) {
  if (!captured.device) {
    const Array array = read_array(item);
    return {array, array.data, version};
  }
  GivenParameter& known = captured.on_host[number];
  const void* address = borrow_view(item).address();
  if (known.data != address || known.version != version || known.array.data == nullptr) {
    const Ref copy = Ref::own(PyObject_CallFunctionObjArgs(captured.device->to_host.get(), item, nullptr));
    known = {read_array(copy.get()), address, version};
  }
  return known;
}

std::map<std::size_t, GivenParameter> constant_parameters(Captured& captured,
                                                          const std::vector<PyObject*>& items) {
  std::map<std::size_t, GivenParameter> constants;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!captured.graph.inputs[i].may_be_constant()) continue;
    const auto changes = captured.changes.find(i);
    if (changes != captured.changes.end() && changes->second >= most_changes) continue;
    const auto version = captured.counts.of(captured.graph.inputs, i, items, borrow_view(items[i]));
    if (version) constants[i] = given_parameter(captured, i, items[i], *version);
  }
  return constants;
}

/// Takes the place's program away. What a captured graph launches stays, and what a program that is being made shares
/// weights with.
void replace(Captured& captured, std::unique_ptr<CapturedProgram>& place,
             std::unique_ptr<CapturedProgram> made) {
  std::swap(place, made);
  if (made != nullptr && (made->device.is_captured || !captured.making.empty()))
    captured.replaced.push_back(std::move(made));
}

/// The least recently called goes when there are too many.
void limit_programs(Captured& captured) {
  const auto most = static_cast<std::size_t>(captured.setup->config.sizes_kept);
  while (captured.programs.size() > most) {
    auto oldest = captured.programs.begin();
    for (auto i = captured.programs.begin(); i != captured.programs.end(); ++i)
      if (captured.last_call[i->first] < captured.last_call[oldest->first]) oldest = i;
    captured.last_call.erase(oldest->first);
    replace(captured, oldest->second, nullptr);
    captured.programs.erase(oldest);
  }
}

/// Is torch to run the graph until this is compiled?
bool answers_first(const ChosenCapture& capture) {
  const Setup& setup = *capture.imported.setup;
  return setup.config.first_answer == FirstAnswer::fast && !setup.machine.gpu && !setup.config.tune_enabled;
}

/// Graphs of a model are made one after another: each takes all cores.
std::unique_ptr<CapturedProgram> make_in_turn(const ChosenCapture& capture, const Relatives& relatives,
                                              const std::stop_token& stop) {
  static std::timed_mutex making;
  std::unique_lock turn(making, std::defer_lock);
  while (!turn.try_lock_for(std::chrono::milliseconds(20)))
    if (stop.stop_requested()) throw Stopped{};
  return std::make_unique<CapturedProgram>(build_captured(capture, relatives, stop));
}

/// nullptr while it is being made.
std::unique_ptr<CapturedProgram> take_made(Captured& captured, const Sizes& sizes) {
  const auto found = captured.making.find(sizes);
  if (!found->second->is_ready()) return nullptr;
  const std::unique_ptr<MakingProgram> making = std::move(found->second);
  captured.making.erase(found);
  return making->take();
}

/// nullptr where a thread has begun to make it.
std::unique_ptr<CapturedProgram> make_program_for(Captured& captured, const Sizes& sizes,
                                                  const std::vector<PyObject*>& items, bool may_borrow) {
  const std::map<std::size_t, GivenParameter> constants = constant_parameters(captured, items);
  if (captured.open && may_borrow)
    if (auto found = borrow_captured(constants, sizes, *captured.open,
                                     up_to_date(captured, items, /*take_turns=*/true)))
      return std::make_unique<CapturedProgram>(*std::move(found));
  auto capture = std::make_shared<ChosenCapture>();
  bool waits = true;
  {
    const WithoutGil others_run;
    *capture = choose_captured(captured.graph, sizes, constants, captured.setup, captured.open.get());
    waits = !answers_first(*capture) || missing_objects(capture->imported, capture->chosen) == 0;
  }
  const Relatives relatives = up_to_date(captured, items, /*take_turns=*/waits);
  if (!waits) {
    captured.making[sizes] =
        std::make_unique<MakingProgram>([capture, relatives](const std::stop_token& stop) {
          return make_in_turn(*capture, relatives, stop);
        });
    return nullptr;
  }
  const WithoutGil others_run;
  auto made = std::make_unique<CapturedProgram>(build_captured(*capture, relatives));
  if (captured.open) note_captured(*capture, *made, *captured.open);
  return made;
}

/// The program for these sizes, built where it is missing or parameters have changed; nullptr while it is being made, and
/// where it would have to be built while `stays` says that nothing may be. Throws Error where it cannot be built.
CapturedProgram* program_for(Captured& captured, const Sizes& sizes, const std::vector<PyObject*>& items,
                             bool stays) {
  const auto found = captured.programs.find(sizes);
  const bool is_making = captured.making.contains(sizes);
  const bool has_better = found != captured.programs.end() && may_have_better(*found->second);
  if (!is_making && found != captured.programs.end() && !has_better &&
      parameters_hold(captured, *found->second, items))
    return found->second.get();
  if (stays) return nullptr;
  std::unique_ptr<CapturedProgram> made =
      is_making ? take_made(captured, sizes) : make_program_for(captured, sizes, items, !has_better);
  if (made == nullptr) return nullptr;
  if (captured.open && !made->is_borrowed)
    captured.open->known.note_new(made->built.program.plan(), *made->built.choices);
  note_overwrites(lone_writes(captured.writes, captured.results), *made);
  if (!captured.device) make_result_blocks(*made);
  add_report(captured.report, made->built.report);
  captured.report.kernels = made->built.report.kernels;
  captured.report.unique_kernels = made->built.report.unique_kernels;
  std::unique_ptr<CapturedProgram>& place = captured.programs[sizes];
  replace(captured, place, std::move(made));
  CapturedProgram* kept = place.get();
  const bool holds = parameters_hold(captured, *kept, items);
  limit_programs(captured);  // not this one: it is called now
  return holds ? kept : nullptr;
}

/// What is returned and written of a run, which has a value for each result of the text.
template <typename Run>
Ref finish(const Captured& captured, const Sizes& sizes, const std::vector<PyObject*>& items, Run&& run) {
  Ref list = returned_list(captured.results, items, by_name(captured.graph, sizes), captured.tools.view.get(),
                           [&](std::size_t number) { return run.value(number); });
  for (const Write& write : captured.writes) run.write(write.result, items.at(write.input));
  return list;
}

const dlpack::ExchangeApi& api_of(const Captured& captured, const std::vector<PyObject*>& items) {
  for (std::size_t i = 0; i < items.size(); ++i)
    if (captured.graph.inputs[i].kind != CapturedInput::Kind::size && items[i] != Py_None)
      return required_api(items[i]);
  return torch_api();
}

/// nullptr where torch is to run the graph. `list` has the items.
Ref run_captured(Captured& captured, const Sizes& sizes, const std::vector<PyObject*>& items,
                 PyObject* list) {
  const dlpack::ExchangeApi& api = api_of(captured, items);
  // To build waits and allocates, which would break a capture.
  const bool stays = captured.device && cuda::is_capturing(current_stream(api));
  CapturedProgram* program = program_for(captured, sizes, items, stays);
  if (program == nullptr) return {};
  if (captured.device)
    return finish(captured, sizes, items, DeviceRun(*captured.device, *program, list, captured.shown, api));
  return finish(captured, sizes, items, HostRun(*program, items, api));
}

/// Tells why; throws PythonError where that is an error.
void tell_failure(const Captured& captured, const std::string& reason) {
  (void)Ref::own(PyObject_CallFunctionObjArgs(captured.tools.failed.get(), from_text(reason).get(), nullptr));
}

/// nullptr where torch is to run the graph.
Ref try_call(Captured& captured, const std::vector<PyObject*>& items, PyObject* list) {
  const Sizes sizes = sizes_of(captured, items);
  if (const auto found = captured.programs.find(sizes);
      found != captured.programs.end() && found->second == nullptr)
    return {};
  captured.last_call[sizes] = ++captured.calls;
  try {
    return run_captured(captured, sizes, items, list);
  } catch (const Error& error) {
    replace(captured, captured.programs[sizes], nullptr);
    tell_failure(captured, error.what());
    return {};
  }
}

PyObject* call(PyObject* self, PyObject* arguments, PyObject* /*keywords*/) {
  return guarded([&] {
    PyObject* list = nullptr;
    if (PyArg_ParseTuple(arguments, "O!", &PyList_Type, &list) == 0) throw PythonError();
    Captured& captured = *CapturedObject::of(self);
    const std::vector<PyObject*> items = items_of(list);
    if (items.size() != captured.graph.inputs.size())
      throw InputError("{} inputs given, the graph takes {}", items.size(), captured.graph.inputs.size());
    Ref results;
    {
      std::unique_lock turn(*captured.running, std::defer_lock);
      if (!turn.try_lock()) {
        const WithoutGil others_run;
        turn.lock();
      }
      results = try_call(captured, items, list);
    }
    if (!results)
      return Ref::own(PyObject_CallFunctionObjArgs(captured.tools.fallback.get(), list, nullptr)).release();
    PyList_SetSlice(list, 0, PyList_Size(list), nullptr);  // these may die before the results do
    return results.release();
  });
}

CapturedInput read_captured_input(PyObject* tuple) {
  const std::vector<PyObject*> words = items_of(tuple);
  static const std::map<std::string, CapturedInput::Kind> kinds = {
      {"size", CapturedInput::Kind::size},
      {"tensor", CapturedInput::Kind::tensor},
      {"parameter", CapturedInput::Kind::parameter},
      {"statistics", CapturedInput::Kind::statistics},
      {"unused", CapturedInput::Kind::unused}};
  return {kinds.at(to_text(words.at(0))), to_text(words.at(1))};
}

void read_graph(Captured& captured, PyObject* inputs, PyObject* held, PyObject* symbols) {
  for (PyObject* input : items_of(inputs)) captured.graph.inputs.push_back(read_captured_input(input));
  for (PyObject* pair : items_of(held))
    captured.graph.held[to_text(items_of(pair).at(0))] = dense_tensor(read_array(items_of(pair).at(1)));
  for (PyObject* symbol : items_of(symbols)) {
    const std::vector<PyObject*> words = items_of(symbol);
    captured.graph.symbols.push_back({to_text(words.at(0)), static_cast<std::size_t>(to_integer(words.at(1))),
                                      static_cast<int>(to_integer(words.at(2)))});
  }
}

PyObject* program_report(PyObject* self, PyObject* /*unused*/) {
  return guarded([&] { return report_object(CapturedObject::of(self)->report).release(); });
}

PyObject* is_boxed(PyObject* /*self*/, void* /*unused*/) {
  return PyBool_FromLong(1);
}

PyType_Spec* program_spec() {
  static PyMethodDef methods[] = {
      {"report", program_report, METH_NOARGS, "Counts and times of what was compiled so far."},
      {nullptr, nullptr, 0, nullptr}};
  static PyGetSetDef properties[] = {{"_boxed_call", is_boxed, nullptr, "AOTAutograd's convention.", nullptr},
                                     {nullptr, nullptr, nullptr, nullptr, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(CapturedObject::free_object)},
                                {Py_tp_call, reinterpret_cast<void*>(call)},
                                {Py_tp_methods, methods},
                                {Py_tp_getset, properties},
                                {0, nullptr}};
  static PyType_Spec made = {"sylvite._native.Program", sizeof(CapturedObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  return &made;
}

PyType_Spec* setup_spec() {
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(SetupObject::free_object)},
                                {0, nullptr}};
  static PyType_Spec made = {"sylvite._native.Setup", sizeof(SetupObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  return &made;
}

}  // namespace

void add_program_types(PyObject* module) {
  program_type() = Ref::own(PyType_FromSpec(program_spec())).release();
  setup_type() = Ref::own(PyType_FromSpec(setup_spec())).release();
  if (PyModule_AddObjectRef(module, "Program", program_type()) != 0 ||
      PyModule_AddObjectRef(module, "Setup", setup_type()) != 0)
    throw PythonError();
}

PyObject* make_setup_object(PyObject* /*module*/, PyObject* settings) {
  return guarded([&] {
    const CompileOptions options = read_settings(settings);
    set_up_log_of(options);
    return SetupObject::make(setup_type(), make_setup(options)).release();
  });
}

PyObject* make_program(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject *setup = nullptr, *text = nullptr, *inputs = nullptr, *held = nullptr, *symbols = nullptr,
             *results = nullptr, *writes = nullptr, *fallback = nullptr, *failed = nullptr, *view = nullptr,
             *device = nullptr;
    if (PyArg_ParseTuple(arguments, "OUOOOOO(OOO)O", &setup, &text, &inputs, &held, &symbols, &results,
                         &writes, &fallback, &failed, &view, &device) == 0)
      throw PythonError();
    auto captured = std::make_unique<Captured>();
    captured->setup = SetupObject::of(setup);
    captured->graph.text = to_text(text);
    read_graph(*captured, inputs, held, symbols);
    captured->open = open_capture(captured->graph, captured->setup);
    for (PyObject* result : items_of(results)) captured->results.push_back(read_result(result));
    captured->shown = shown_inputs(captured->results);
    for (PyObject* write : items_of(writes)) {
      const std::vector<PyObject*> words = items_of(write);
      captured->writes.push_back({static_cast<std::size_t>(to_integer(words.at(0))),
                                  static_cast<std::size_t>(to_integer(words.at(1))), words.size() > 2});
      captured->shown.insert(captured->writes.back().input);
    }
    for (const Write& write : lone_writes(captured->writes, captured->results)) {
      const std::string& name = captured->graph.inputs.at(write.input).name;
      if (name.empty()) continue;  // it is not read
      captured->graph.overwrites.emplace_back(write.result, name);
    }
    if (captured->setup->machine.gpu) {
      captured->device = read_device_tools(device);
      captured->counts.set_counters(captured->device->find_counters);
    }
    captured->tools = {Ref::share(fallback), Ref::share(failed), Ref::share(view)};
    captured->report.programs = 0;
    return CapturedObject::make(program_type(), std::move(captured)).release();
  });
}

PyObject* stop_making(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded([&] {
    for (Captured* captured : Captured::all()) captured->stop();
    return Py_NewRef(Py_None);
  });
}

PyObject* list_refusals(PyObject* /*module*/, PyObject* arguments) {
  return guarded([&] {
    PyObject* text = nullptr;
    PyObject* sizes = nullptr;
    if (PyArg_ParseTuple(arguments, "UO!", &text, &PyDict_Type, &sizes) == 0) throw PythonError();
    TorchImportOptions options;
    PyObject *name = nullptr, *number = nullptr;
    for (Py_ssize_t place = 0; PyDict_Next(sizes, &place, &name, &number) != 0;)
      options.sizes[to_text(name)] = to_integer(number);
    Ref list = Ref::own(PyList_New(0));
    for (const TorchRefusal& refusal : torch_refusals(to_text(text), options)) {
      const Ref item =
          Ref::own(Py_BuildValue("(sss)", refusal.node.c_str(), refusal.op.c_str(), refusal.reason.c_str()));
      if (PyList_Append(list.get(), item.get()) != 0) throw PythonError();
    }
    return list.release();
  });
}

}  // namespace sylvite::python
