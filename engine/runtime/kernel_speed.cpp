#include "runtime/kernel_speed.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "profile/least_seconds.h"
#include "runtime/devices.h"
#include "runtime/tuning.h"
#include "runtime/watchdog.h"
#include "samebytes/error.h"
#include "samebytes/io/files.h"
#include "samebytes/log.h"

namespace samebytes {
namespace detail {
namespace {

using Json = nlohmann::ordered_json;

// Eight independent sums, so that the latency of an addition is hidden. The sums stay finite: b is below 1.
constexpr const char* kProbe = R"(
#define SUMS(T, STEP)                                                                      \
  T a0 = (T)(0.0f), a1 = (T)(0.1f), a2 = (T)(0.2f), a3 = (T)(0.3f);                        \
  T a4 = (T)(0.4f), a5 = (T)(0.5f), a6 = (T)(0.6f), a7 = (T)(0.7f);                        \
  const T vb = (T)(b), vc = (T)(c);                                                        \
  for (int i = 0; i < n; ++i) {                                                            \
    a0 = STEP(a0); a1 = STEP(a1); a2 = STEP(a2); a3 = STEP(a3);                            \
    a4 = STEP(a4); a5 = STEP(a5); a6 = STEP(a6); a7 = STEP(a7);                            \
  }                                                                                        \
  const T sum = ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7));
#define FUSED(a) fma(a, vb, vc)
#define APART(a) (a) * vb + vc
#pragma OPENCL FP_CONTRACT OFF
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void vectors(__global float* out, const int n, const float b, const float c) {
  SUMS(float16, FUSED)
  vstore16(sum, get_global_id(0), out);
}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void products(__global float* out, const int n, const float b, const float c) {
  SUMS(float16, APART)
  vstore16(sum, get_global_id(0), out);
}
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void items(__global float* out, const int n, const float b, const float c) {
  SUMS(float, FUSED)
  out[get_global_id(0)] = sum;
}
)";

constexpr std::size_t kSums = 8, kVector = 16, kItems = 64;
constexpr int kFirstSteps = 64, kMostSteps = 1 << 16, kRounds = 3;
constexpr double kEnoughSeconds = 150e-6;  // several times what a launch takes

// Emulated fma (llvmpipe of Mesa 22.3) is tens of times slower than a multiplication and an addition.
constexpr double kLeastFma = 0.25;
// Intel's CPU runtime 2026.2: 0.5, on a machine that was busy. A GPU uses one of at least 16 lanes.
constexpr double kLeastVectors = 0.2;

class Probe {
 public:
  explicit Probe(const cl::Device& device)
      : context_(device),
        name_(device.getInfo<CL_DEVICE_NAME>()),
        queue_(make_queue(context_, device, 0, name_)),
        program_(context_, std::string(kProbe)) {
    groups_ = std::max<std::size_t>(1, device.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>());
    out_ = cl::Buffer(context_, CL_MEM_READ_WRITE, groups_ * kItems * sizeof(float));
    const cl_int status = clBuildProgram(program_(), 1, &device(), "-cl-std=CL1.2", nullptr, nullptr);
    if (status != CL_SUCCESS) throw cl::Error(status, "clBuildProgram");
  }

  double gflops(const char* entry, std::size_t local, std::size_t lanes) {
    cl::Kernel kernel(program_, entry);
    kernel.setArg(0, out_);
    kernel.setArg(2, 0.999f);
    kernel.setArg(3, 0.001f);
    int steps = kFirstSteps;
    const auto run = [&] {
      kernel.setArg(1, steps);
      queue_.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(groups_ * local), cl::NDRange(local));
      watchdog_.finish(queue_, name_);
    };
    run();  // drivers compile at the first launch
    double seconds = least_seconds(kRounds, run);
    while (seconds < kEnoughSeconds && steps < kMostSteps) {
      steps *= 4;
      seconds = least_seconds(kRounds, run);
    }
    return 2e-9 * static_cast<double>(groups_ * local * lanes * kSums) * steps / std::max(seconds, 1e-9);
  }

 private:
  Watchdog watchdog_{EngineOptions{}.stall_seconds};
  cl::Context context_;
  std::string name_;
  cl::CommandQueue queue_;
  cl::Program program_;
  cl::Buffer out_;
  std::size_t groups_ = 1;
};

constexpr const char* kAbout =
    "What a probe measured on CPU devices whose drivers do not announce fused multiply-add, in GFLOP/s. It decides "
    "which kernels they get. Remove the file to measure again.";
constexpr int kFormat = 1;

std::string store_path(const DeviceInfo& info) {
  const std::string tuning = tuning_path(info);
  return tuning.empty() ? tuning : (std::filesystem::path(tuning).parent_path() / "devices.json").string();
}

std::string key_of(const DeviceInfo& info) {
  return info.platform + ", " + info.name + ", " + info.driver + ", " + std::to_string(info.cores) + " cores";
}

// A folder that cannot be written is no reason to stop; the next process measures again.
void write_store(const std::string& path, const std::map<std::string, KernelSpeed>& speeds) {
  if (path.empty()) return;
  Json all = Json::object();
  for (const auto& [name, speed] : speeds)
    all[name] = {{"vectors", speed.vectors}, {"items", speed.items}, {"products", speed.products}};
  try {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    io::write_file(path, Json{{"about", kAbout}, {"format", kFormat}, {"speeds", all}}.dump(2) + "\n");
  } catch (const std::exception& error) {
    log_message("warning", std::string("devices: what the probe measured is not kept: ") + error.what());
  }
}

}  // namespace

std::map<std::string, KernelSpeed> read_kernel_speeds(const std::string& path) {
  std::map<std::string, KernelSpeed> speeds;
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return speeds;
  const std::vector<std::byte> bytes = io::read_file(path);
  const Json json = parse_json<Json>("devices", path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto rate = [&](const Json& speed, const char* name) {
    if (!speed.is_object() || !speed.contains(name) || !speed[name].is_number() || !(speed[name].get<double>() > 0))
      throw IoError("devices: " + path + ": expected " + name + " above 0; remove the file, and it is measured again",
                    path);
    return speed[name].get<double>();
  };
  if (!json.is_object() || json.value("format", Json()) != kFormat || !json.contains("speeds") ||
      !json["speeds"].is_object())
    throw IoError("devices: " + path + ": expected format " + std::to_string(kFormat) +
                      " and an object speeds; remove the file, and they are measured again",
                  path);
  for (const auto& [name, speed] : json["speeds"].items())
    speeds[name] = {rate(speed, "vectors"), rate(speed, "items"), rate(speed, "products")};
  return speeds;
}

bool has_fast_fma(const KernelSpeed& speed) { return speed.vectors >= kLeastFma * speed.products; }

bool has_fast_vectors(const KernelSpeed& speed) { return speed.vectors >= kLeastVectors * speed.items; }

std::string text_of_speed(const KernelSpeed& speed) {
  char text[160];
  std::snprintf(text, sizeof text,
                "multiply-adds of vectors %.3g GFLOP/s, of 64 items %.3g, with a separate addition %.3g", speed.vectors,
                speed.items, speed.products);
  return text;
}

KernelSpeed measure_kernel_speed(cl_device_id device) {
  Probe probe(borrow(device));
  KernelSpeed speed;
  speed.products = probe.gflops("products", 1, kVector);
  speed.vectors = probe.gflops("vectors", 1, kVector);
  speed.items = probe.gflops("items", kItems, 1);
  return speed;
}

std::optional<KernelSpeed> known_kernel_speed(const DeviceInfo& info, cl_device_id device) {
  // Called under the lock of find_devices().
  static auto& known = *new std::map<std::string, std::optional<KernelSpeed>>;
  const std::string key = key_of(info);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  const std::string path = store_path(info);
  std::map<std::string, KernelSpeed> kept = read_kernel_speeds(path);
  if (const auto found = kept.find(key); found != kept.end()) return known[key] = found->second;
  try {
    known[key] = kept[key] = measure_kernel_speed(device);
  } catch (const cl::Error& error) {
    log_message("warning",
                "devices: " + info.name + " cannot run the probe: " + error.what() + ": " + status_name(error.err()));
    return known[key] = std::nullopt;
  } catch (const DeviceError& error) {  // of a wait
    log_message("warning", "devices: " + info.name + " cannot run the probe: " + error.what());
    return known[key] = std::nullopt;
  }
  write_store(path, kept);
  return known[key];
}

}  // namespace detail

KernelSpeed measure_kernel_speed(const DeviceInfo& device) {
  const detail::FoundDevice found = detail::find_device(std::to_string(device.index));
  return detail::on_device(device.name, [&] { return detail::measure_kernel_speed(found.handle); });
}

}  // namespace samebytes
