#include "runtime/space.h"

#include "runtime/allocator.h"
#include "runtime/devices.h"
#include "runtime/inside_calls.h"
#include "runtime/runtime.h"
#include "runtime/usm.h"
#include "samebytes/error.h"

namespace samebytes::detail {

Space::Space(Runtime& runtime, int index, DeviceInfo info, const std::vector<cl::Device>& devices)
    : runtime_(runtime),
      index_(index),
      info_(std::move(info)),
      // On a device with fine-grained SVM a map does nothing, so a missing map would never show.
      coarse_shadow_(info_.memory_mode == MemoryMode::coarse && info_.svm != "coarse"),
      context_(index == 0 && runtime.options().given ? copy_of(runtime.options().given->context, name())
                                                     : on_device(name(), [&] { return cl::Context(devices); })),
      host_queue_(make_queue(context_, devices.front(), 0, name())),
      usm_(mode() == MemoryMode::usm ? find_usm(devices.front()) : nullptr) {}

void Space::open_memory(const RuntimeOptions& options) {
  const std::string allocator = environment("SAMEBYTES_ALLOCATOR");
  if (!allocator.empty() && allocator != "exact" && allocator != "cache")
    throw ArgumentError("SAMEBYTES_ALLOCATOR: expected cache or exact, got '" + allocator + "'");
  AllocatorSetup setup{.context = {}, .info = info_, .mode = mode()};
  assign(setup.context, context(), name());
  setup.is_dry = options.dry_run;
  setup.usm = usm_;
  setup.watchdog = runtime_.watchdog();
  setup.has_shadow = coarse_shadow_;
  setup.is_exact = allocator == "exact";
  // A simulator that checks every access (Oclgrind) needs no guards around the array. Maps bring the bytes of the array
  // alone, so the host sees guards only where it has the device's memory.
  setup.has_guards = setup.is_exact && !setup.is_dry && info_.platform != "Oclgrind" && info_.type == "cpu" &&
                     mode() != MemoryMode::copy;
  setup.protection = setup.is_dry ? Protection::off : wanted_protection();
  // The driver's threads must have been started with the right to the key, which is known of PoCL's.
  const auto has_keys = [&] {
    return info_.platform == "Portable Computing Language" &&
           !on_device(name(), [&] { return works_inside_calls(first_device().handle()()); });
  };
  if (setup.protection == Protection::keys && !has_keys()) setup.protection = Protection::pages;
  if (setup.protection != Protection::off && setup.is_exact)
    throw ArgumentError("SAMEBYTES_PROTECT closes whole pages, SAMEBYTES_ALLOCATOR=exact has none: set one of them");
  if (setup.protection != Protection::off && info_.type != "cpu" && mode() != MemoryMode::hostptr &&
      mode() != MemoryMode::copy)
    throw ArgumentError(std::string("SAMEBYTES_PROTECT: the memory of mode ") + samebytes::name_of(mode()) +
                        " belongs to the driver of " + info_.name + "; use SAMEBYTES_MEMORY=hostptr or copy with it");
  setup.limit = options.memory_limit ? options.memory_limit : default_memory_limit(info_);
  allocator_ = std::make_shared<Allocator>(std::move(setup));
}

StoragePtr Space::allocate(std::size_t bytes, Category category, const std::string& what, const char* layer,
                           FirstUse first) {
  if (bytes == 0) return nullptr;
  std::unique_ptr<Storage::Block> block = allocator_->take(bytes, category, what, layer, first);
  return std::make_shared<Storage>(*this, allocator_, std::move(block), bytes, category);
}

}  // namespace samebytes::detail
