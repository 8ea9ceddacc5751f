#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "runtime/compile_messages.h"
#include "runtime/compilers.h"
#include "runtime/kernel_cache.h"
#include "runtime/matrix_instructions.h"
#include "runtime/opencl.h"
#include "samebytes/engine.h"

namespace samebytes {
namespace detail {
namespace {

// Zeros that become memory where a kernel writes.
class Zeros {
 public:
  explicit Zeros(std::size_t bytes)
      : bytes_(bytes),
        at_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~Zeros() {
    if (is_there()) ::munmap(at_, bytes_);
  }
  Zeros(const Zeros&) = delete;
  bool is_there() const { return at_ != MAP_FAILED; }
  void* at() const { return at_; }

 private:
  std::size_t bytes_;
  void* at_;
};

struct Worker {
  cl::Device device;
  cl::Context context;
  cl::CommandQueue queue;
  KernelCache cache{kernel_cache_folder()};
  std::map<std::uint64_t, cl::Program> programs;

  bool open(MessageReader& message);
  void add_program(MessageReader& message);
  void compile(MessageReader& message);
};

bool Worker::open(MessageReader& message) {
  const std::string platform_name = message.take_text(), device_name = message.take_text();
  std::vector<cl::Platform> platforms;
  cl::Platform::get(&platforms);
  for (const cl::Platform& platform : platforms) {
    if (platform.getInfo<CL_PLATFORM_NAME>() != platform_name) continue;
    std::vector<cl::Device> devices;
    platform.getDevices(CL_DEVICE_TYPE_ALL, &devices);
    for (const cl::Device& each : devices) {
      if (each.getInfo<CL_DEVICE_NAME>() != device_name) continue;
      device = each;
      context = cl::Context(device);
      queue = cl::CommandQueue(context, device);
      return true;
    }
  }
  return false;
}

void Worker::add_program(MessageReader& message) {
  Key128 key;
  key.a = message.take();
  key.b = message.take();
  const std::string text = message.take_text(), options = message.take_text();
  if (options.find("_TILES") != std::string::npos) cpu_has(Instruction::amx_bf16);  // asks for the registers
  cl::Program program(context, text);
  const KernelCache::Checked checked = cache.check(key);
  if (clBuildProgram(program(), 1, &device(), options.c_str(), nullptr, nullptr) != CL_SUCCESS) return;
  cache.note_built(key);
  programs[key.a] = std::move(program);
}

void Worker::compile(MessageReader& message) {
  const cl::Program& program = programs.at(message.take());
  const std::string entry = message.take_text();
  if (entry.empty()) return;
  const cl::Kernel kernel(program, entry.c_str());
  const auto dimensions = static_cast<cl_uint>(message.take());
  std::size_t global[3], local[3];
  for (int d = 0; d < 3; ++d) {
    const std::size_t groups = message.take();
    local[d] = message.take();
    global[d] = groups * local[d];
  }
  std::vector<BoundArgument> arguments(message.take());
  std::size_t most = 0;
  for (BoundArgument& argument : arguments) {
    argument.index = static_cast<int>(message.take());
    argument.array_bytes = message.take();
    argument.size = message.take();
    argument.bytes = message.take_text();
    most = std::max(most, argument.array_bytes);
  }
  constexpr std::size_t kBeyond = 1 << 20;  // for a kernel that reads ahead
  const Zeros zeros(most + kBeyond);
  if (!message.is_good() || !zeros.is_there()) throw cl::Error(CL_INVALID_VALUE);
  for (const BoundArgument& argument : arguments) {
    const auto index = static_cast<cl_uint>(argument.index);
    check_cl(argument.array_bytes > 0 ? clSetKernelArgSVMPointer(kernel(), index, zeros.at())
                                      : clSetKernelArg(kernel(), index, argument.size,
                                                       argument.bytes.empty() ? nullptr : argument.bytes.data()),
             "clSetKernelArg");
  }
  check_cl(clEnqueueNDRangeKernel(queue(), kernel(), dimensions, nullptr, global, local, 0, nullptr, nullptr),
           "clEnqueueNDRangeKernel");
  check_cl(clFinish(queue()), "clFinish");
}

}  // namespace

int serve_compilers(int socket) {
  Worker worker;
  bool is_open = false;
  while (std::optional<MessageReader> message = MessageReader::receive_from(socket)) {
    const auto kind = static_cast<CompileMessage>(message->take());
    char answer = 1;
    try {
      if (kind == CompileMessage::device) is_open = worker.open(*message);
      if (!is_open) return 1;
      if (kind == CompileMessage::program) worker.add_program(*message);
      if (kind == CompileMessage::kernel) worker.compile(*message);
    } catch (const std::exception&) {  // whoever asked compiles it then, and gets the error
      answer = 0;
    }
    if (kind == CompileMessage::kernel && ::send(socket, &answer, 1, MSG_NOSIGNAL) != 1) return 1;
  }
  return 0;
}

}  // namespace detail

int serve_kernel_compiler() { return detail::serve_compilers(STDIN_FILENO); }

}  // namespace samebytes
