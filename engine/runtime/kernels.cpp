#include "runtime/kernels.h"

#include <algorithm>

#include "runtime/faults.h"
#include "runtime/kernel_cache.h"
#include "runtime/kernel_texts.h"
#include "runtime/runtime.h"
#include "runtime/space.h"
#include "runtime/usm.h"
#include "samebytes/error.h"

namespace samebytes::detail {

void Kernel::check_argument(int index, const char* call, cl_int status) const {
  if (status == CL_SUCCESS) return;
  const std::string name = status_name(status);
  throw DeviceError("kernel " + entry_ + ": " + call + " of argument " + std::to_string(index) + " failed on " +
                        device_ + ": " + name,
                    call, name, device_);
}

void Kernel::note(BoundArgument argument) {
  std::erase_if(noted_->arguments, [&](const BoundArgument& other) { return other.index == argument.index; });
  noted_->arguments.push_back(std::move(argument));
}

void Kernel::set_storage(int index, const Storage& storage) {
  if (noted_) note({.index = index, .array_bytes = std::max<std::size_t>(storage.bytes(), 1)});
  if (!storage.binds_pointer()) {
    const cl_mem buffer = storage.buffer()();
    if (kernel_())
      check_argument(index, "clSetKernelArg",
                     clSetKernelArg(kernel_(), static_cast<cl_uint>(index), sizeof(cl_mem), &buffer));
    return;
  }
  if (!kernel_()) return;
  if (const Usm* usm = storage.mode() == MemoryMode::usm ? storage.space().usm() : nullptr)
    check_argument(index, "clSetKernelArgMemPointerINTEL",
                   usm->set_argument(kernel_(), static_cast<cl_uint>(index), storage.device_pointer()));
  else
    check_argument(index, "clSetKernelArgSVMPointer",
                   clSetKernelArgSVMPointer(kernel_(), static_cast<cl_uint>(index), storage.device_pointer()));
}

void Kernel::set_null(int index) { set_bytes(index, nullptr, sizeof(cl_mem)); }

void Kernel::set_bytes(int index, const void* bytes, std::size_t size) {
  if (noted_)
    note({.index = index,
          .size = size,
          .bytes = bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size)});
  if (kernel_())
    check_argument(index, "clSetKernelArg", clSetKernelArg(kernel_(), static_cast<cl_uint>(index), size, bytes));
}

namespace {

// The text that an injected fault passes to the compiler instead.
std::string spoilt(std::string text, const Device& device) {
  if (faults().unbuildable_on != device.index()) return text;
  MutexLock lock(faults().mutex);
  const std::size_t found = text.find(faults().unbuildable);
  if (found != std::string::npos) text.insert(text.find('\n', found), "\n#error planted");
  return text;
}

Dtype computed_in(Dtype dtype) { return is_16_bit(dtype) ? f32 : dtype; }

void check_real(Dtype real, const DeviceInfo& info) {
  if (real != f32 && real != f64)
    throw ArgumentError("kernels: expected computed in f32 or f64, got " + std::string(name_of(real)));
  if (real == f64 && !info.has_f64)
    throw ArgumentError("kernels: f64 needs a device with double, " + info.name + " has none");
}

// The caller's name of a text, which must neither end the string nor the line that it stands in.
std::string one_word(std::string what) {
  for (char& each : what)
    if (each == '"' || each == '\\' || static_cast<unsigned char>(each) < ' ') each = '_';
  return what;
}

// A generated text after common.clh; the compiler's messages call it `what`. All but fused kernels may be a user's.
std::string with_common(const std::string& text, const std::string& what) {
  const std::string whole = common_text() + "#line 1 \"" + one_word(what) + "\"\n" + text;
  return what == kFusedProgram ? whole : with_any_builtin(whole);
}

// What tells generated texts, and bodies, apart in this process.
std::string key_of_generated(Dtype dtype, const std::string& text) { return std::string(name_of(dtype)) + "\n" + text; }
std::string fused_name(int number) { return "fused_" + std::to_string(number); }

// One text of generated bodies.
std::string joined(const std::set<std::string>& bodies) {
  static constexpr std::string_view kName = "@NAME@";
  std::string text;
  int number = 0;
  for (const std::string& body : bodies) {
    const std::size_t at = text.size() + body.find(kName);
    text += body;
    text.replace(at, kName.size(), fused_name(number++));
  }
  return text;
}

// How an error names the text that was searched for an entry.
std::string text_of(Dtype dtype, Personality personality) {
  return "kernels of personality " + std::string(samebytes::name_of(personality)) +
         (is_16_bit(dtype) ? " with arrays of " + std::string(name_of(dtype)) : "");
}

ArgumentError no_such_entry(const std::string& entry, const std::string& where, const std::string& there_is) {
  return ArgumentError("kernel: no entry is called '" + entry + "' in the " + where + there_is);
}

std::string joined_stems(const KernelFiles& files) {
  std::string text;
  for (const auto& [stem, program] : files) text += (text.empty() ? "" : ";") + stem;
  return text;
}

}  // namespace

std::string why_not_launched(Device& device, const Kernel& kernel, const Geometry& geometry) {
  const std::size_t items = geometry.local[0] * geometry.local[1] * geometry.local[2];
  if (items <= 1 || !kernel.get()) return {};
  std::size_t most = 0;
  cl_ulong local = 0, there_is = 0;
  const auto ask = [&](cl_kernel_work_group_info what, std::size_t size, void* answer) {
    return clGetKernelWorkGroupInfo(kernel.get(), device.handle()(), what, size, answer, nullptr) == CL_SUCCESS;
  };
  // Rusticl reports 32 for kernels that it runs in groups of 128.
  const bool is_known =
      device.info().platform != "rusticl" && ask(CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most) && most > 0;
  if (faults().device_fault == DeviceFault::small_groups && faults().faulty_device == device.index()) most = 1;
  if (is_known && items > most)
    return "groups of " + std::to_string(items) + " items, at most " + std::to_string(most) + " of this kernel";
  if (ask(CL_KERNEL_LOCAL_MEM_SIZE, sizeof local, &local) &&
      clGetDeviceInfo(device.handle()(), CL_DEVICE_LOCAL_MEM_SIZE, sizeof there_is, &there_is, nullptr) == CL_SUCCESS &&
      local > there_is)
    return std::to_string(local) + " bytes of local memory for each group, there are " + std::to_string(there_is);
  return {};
}

std::string KernelLibrary::defines(Dtype dtype) const {
  const Dtype real = computed_in(dtype);
  std::string text = device_.personality() == Personality::cpu ? "-DSAMEBYTES_CPU" : "-DSAMEBYTES_GPU";
  if (real == f64) text += " -DSAMEBYTES_F64";
  text += " -DVW=" + std::to_string(device_.vector_width(real));
  if (device_.info().has_fma) text += " -DSAMEBYTES_HAS_FMA";
  if (dtype == f16) text += " -DSAMEBYTES_STORE_F16";
  if (dtype == bf16) text += " -DSAMEBYTES_STORE_BF16";
  if (dtype == bf16 && device_.has_bf16_tiles())
    text += " -DSAMEBYTES_BF16_TILES";
  else if (dtype == bf16 && device_.has_bf16_dots())
    text += " -DSAMEBYTES_BF16_DOTS";
  if (is_16_bit(dtype) && device_.has_ptx_mma()) text += " -DSAMEBYTES_MATRIX_PTX";
  return text;
}

std::string KernelLibrary::defines_of(Dtype dtype, const std::string& program) const {
  std::string text = device_.tuning().defines(computed_in(dtype));
  if (program != "int8") return text;
  if (device_.has_int8_tiles())
    text += " -DSAMEBYTES_INT8_TILES";
  else if (device_.has_int8_dots())
    text += " -DSAMEBYTES_INT8_DOTS";
  return text;
}

// What does not match its checksum is compiled again. A bare call: the wrapper asks every device of the context for its
// log, even if the program builds.
cl_int KernelLibrary::build(const Built& built, const std::string& options) {
  KernelCache* const cache = device_.kernel_cache();
  const auto call = [&] {
    return clBuildProgram(built.program(), 1, &device_.handle()(), options.c_str(), nullptr, nullptr);
  };
  if (cache == nullptr) return call();
  const KernelCache::Checked checked = cache->check(built.kept_as);
  if (!checked.wrong.empty())
    device_.runtime().watchdog()->note({"clBuildProgram", "damaged kernel cache", device_.info().name},
                                       "the kernel cache of " + device_.info().platform +
                                           " is damaged: " + checked.wrong + "; its kernels are compiled again");
  const cl_int status = call();
  if (status == CL_SUCCESS) cache->note_built(built.kept_as);
  return status;
}

ProgramSource KernelLibrary::source_of(Dtype real, const std::string& text, const std::string& tiles) const {
  const DeviceInfo& info = device_.info();
  ProgramSource source{.text = spoilt(text, device_), .options = "-cl-std=CL1.2 " + defines(real) + tiles};
  if (info.platform == "Portable Computing Language") source.options += builtins_option(text);
  source.key = program_key(source.text, source.options, info.name, info.platform + " " + info.driver);
  return source;
}

const KernelLibrary::Built& KernelLibrary::program(Dtype real, const std::string& key, const std::string& what,
                                                   const std::string& text, const std::string& tiles) {
  auto found = programs_.find(key);
  if (found != programs_.end()) return found->second;
  if (const auto failed = failures_.find(key); failed != failures_.end()) throw BuildError(failed->second);
  ProgramSource source = source_of(real, text, tiles);
  const std::string chosen = defines(real) + tiles;
  const auto made = [&] {
    return Built{on_device(device_.info().name, [&] { return cl::Program(device_.context(), source.text); }),
                 source.key};
  };
  Built built = made();
  programs_built_.fetch_add(1, std::memory_order_relaxed);
  cl_int status = build(built, source.options);
  if (status == CL_BUILD_PROGRAM_FAILURE && source.options.find("-DSAMEBYTES_BUILTINS") != std::string::npos) {
    source = source_of(real, with_any_builtin(text), tiles);
    built = made();
    status = build(built, source.options);
    if (status == CL_SUCCESS) give_up_own_builtins();
  }
  if (status != CL_SUCCESS) {
    std::string log;
    try {
      log = with_files_of(built.program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(device_.handle()), source.text);
    } catch (const cl::Error& error) {
      log = "(clBuildProgram failed, and " + std::string(error.what()) +
            ", which has the log: " + status_name(error.err()) + ")";
    }
    const std::string file = first_file_in_log(log, what);
    if (device_.kernel_cache() != nullptr) log = why_no_kernels_in(kernel_cache_folder()) + log;
    const BuildError error("kernel " + file + " does not build on " + device_.info().name + " with " + chosen +
                               ": clBuildProgram: " + status_name(status) + "\n" + log,
                           file, chosen, log);
    if (keeps_what_builds_) failures_.emplace(key, error);
    throw error;
  }
  return programs_.emplace(key, std::move(built)).first->second;
}

std::unique_ptr<Kernel> KernelLibrary::make(Dtype real, const std::string& key, const std::string& what,
                                            const std::string& text, const std::string& entry) {
  MutexLock lock(mutex_);
  const Built& built = program(real, key, what, text);
  KernelCache* const cache = device_.kernel_cache();
  const bool is_unknown = cache != nullptr && cache->note_use(built.kept_as, entry);
  if (is_unknown)
    if (const std::string why = why_no_linker(device_.info().driver); !why.empty())
      throw DeviceError("kernel " + entry + ": " + why, "clCreateKernel", "", device_.info().name);
  const bool is_new = is_unknown && device_.compilers() != nullptr;
  return on_device(device_.info().name, [&] {
    try {
      auto kernel = std::make_unique<Kernel>(cl::Kernel(built.program, entry.c_str()), entry, device_.info().name);
      if (is_new) kernel->note_arguments(built.kept_as);
      return kernel;
    } catch (const cl::Error& error) {
      if (error.err() == CL_INVALID_KERNEL_NAME)
        throw no_such_entry(entry, what, "; there is " + built.program.getInfo<CL_PROGRAM_KERNEL_NAMES>());
      const std::string status = status_name(error.err()), device = device_.info().name;
      throw DeviceError("kernel " + entry + ": " + error.what() + " failed: " + status + " on " + device, error.what(),
                        status, device);
    }
  });
}

KernelLibrary::Group KernelLibrary::group_of(Dtype dtype, const std::string& file) {
  const std::set<std::string>& without = left_out_[dtype];
  Group group{.key = std::string(name_of(dtype)) + "/" + files_.at(file)};
  for (const auto& [stem, program] : files_) {
    if (program != files_.at(file)) continue;
    if (without.count(stem) == 0)
      group.stems.insert(stem);
    else
      group.key += "-" + stem;
  }
  return group;
}

std::vector<CompileJob> KernelLibrary::programs_to_build(const std::set<std::pair<Dtype, std::string>>& entries) {
  std::vector<CompileJob> jobs;
  KernelCache* const cache = device_.kernel_cache();
  if (cache == nullptr || !cache->is_on() || is_alone_) return jobs;
  const Personality personality = device_.personality();
  MutexLock lock(mutex_);
  if (files_.empty()) files_ = kernel_files(personality);
  std::set<std::string> seen;
  for (const auto& [dtype, entry] : entries) {
    std::string file = file_of_entry(files_, entry);
    for (const auto& [stem, program] : files_)  // conv of conv2d, pool2d of max_pool2d
      if (file.empty() && entry.find(stem) != std::string::npos) file = stem;
    if (file.empty()) continue;
    const auto [key, stems] = group_of(dtype, file);
    if (programs_.count(key) != 0 || failures_.count(key) != 0 || !seen.insert(key).second) continue;
    auto source = std::make_shared<const ProgramSource>(
        source_of(dtype, library_text(personality, stems, is_16_bit(dtype)), defines_of(dtype, files_.at(file))));
    if (!cache->has_program(source->key)) jobs.push_back({.source = std::move(source)});
  }
  return jobs;
}

std::string KernelLibrary::build_for(Dtype dtype, const std::string& entry) {
  const Personality personality = device_.personality();
  if (files_.empty()) files_ = kernel_files(personality);
  const std::string file = file_of_entry(files_, entry);
  if (file.empty())
    throw no_such_entry(entry, text_of(dtype, personality), "; it would start with one of " + joined_stems(files_));
  const std::string type(name_of(dtype)), tiles = defines_of(dtype, files_.at(file));
  const auto key_of_file = [&](const std::string& stem) { return type + "/" + stem + ".cl"; };
  if (is_alone_) {
    try {
      program(dtype, key_of_file(file), file, library_text(personality, {file}), tiles);
      return key_of_file(file);
    } catch (const BuildError&) {  // it includes another file, or is wrong: building everything together tells which
    }
  }
  std::set<std::string>& without = left_out_[dtype];
  for (;;) {
    if (without.count(file) != 0) throw BuildError(failures_.at(key_of_file(file)));
    const auto [key, stems] = group_of(dtype, file);
    try {
      const bool is_known = programs_.count(key) != 0 || failures_.count(key) != 0;
      program(dtype, key, "kernels", is_known ? std::string() : library_text(personality, stems, is_16_bit(dtype)),
              tiles);
      return key;
    } catch (const BuildError& error) {
      const std::string blamed = stem_of(error.file(), personality);
      if (!keeps_what_builds_ || blamed.empty() || !without.insert(blamed).second) throw;
      failures_.emplace(key_of_file(blamed), error);
    }
  }
}

std::unique_ptr<Kernel> KernelLibrary::make_kernel(Dtype dtype, const std::string& entry) {
  check_real(computed_in(dtype), device_.info());
  if (device_.runtime().is_dry()) return std::make_unique<Kernel>(cl::Kernel(), entry, device_.info().name);
  std::string key;
  {
    MutexLock lock(mutex_);
    key = build_for(dtype, entry);
  }
  return make(dtype, key, text_of(dtype, device_.personality()), "", entry);
}

std::unique_ptr<Kernel> KernelLibrary::make_generated(Dtype dtype, const std::string& text, const std::string& entry,
                                                      const std::string& what) {
  check_real(computed_in(dtype), device_.info());
  if (device_.runtime().is_dry()) return std::make_unique<Kernel>(cl::Kernel(), entry, device_.info().name);
  return make(dtype, key_of_generated(dtype, text), what, with_common(text, what), entry);
}

std::unique_ptr<Kernel> KernelLibrary::make_fused(Dtype dtype, const std::string& body, const std::string& what) {
  return make_generated(dtype, joined({body}), fused_name(0), what);
}

std::map<std::string, KernelLibrary::Placed> KernelLibrary::place(Dtype dtype, const std::set<std::string>& bodies) {
  MutexLock lock(mutex_);
  std::map<std::string, Placed> placed;
  for (const std::string& body : bodies) {
    const auto found = bodies_.find(key_of_generated(dtype, body));
    if (found != bodies_.end() && programs_.count(key_of_generated(dtype, *found->second.text)) != 0)
      placed.emplace(body, found->second);
  }
  if (placed.size() == bodies.size()) return placed;
  if (!placed.empty() && is_built(dtype, joined(bodies))) placed.clear();
  std::set<std::string> rest;
  for (const std::string& body : bodies)
    if (placed.count(body) == 0) rest.insert(body);
  const auto text = std::make_shared<const std::string>(joined(rest));
  int number = 0;
  for (const std::string& body : rest) {
    const Placed place{text, fused_name(number++)};
    placed.emplace(body, place);
    bodies_.insert_or_assign(key_of_generated(dtype, body), place);
  }
  return placed;
}

bool KernelLibrary::is_built(Dtype dtype, const std::string& text) const {
  if (programs_.count(key_of_generated(dtype, text)) != 0) return true;
  KernelCache* const cache = device_.kernel_cache();
  return cache != nullptr && cache->is_on() &&
         cache->has_program(source_of(dtype, with_common(text, kFusedProgram), {}).key);
}

std::int64_t KernelLibrary::constant(Dtype dtype, std::string_view stem, std::string_view name) const {
  const Dtype real = computed_in(dtype);
  const int width = device_.vector_width(real);
  std::string key = std::string(name_of(real)) + "/" + std::string(stem) + "/" + std::string(name);
  {
    MutexLock lock(mutex_);
    if (auto found = constants_.find(key); found != constants_.end()) return found->second;
  }
  const std::int64_t value = kernel_constant(device_.personality(), width, stem, name, device_.tuning().tiles(real));
  MutexLock lock(mutex_);
  constants_.emplace(std::move(key), value);
  return value;
}

}  // namespace samebytes::detail
