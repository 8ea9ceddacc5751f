// Which devices a verb works on: --device, --split-device, --threads.
#include "cli/option_groups.h"
#include "cli/session.h"
#include "cli/usage_error.h"

namespace samebytes::cli {

void add_device_options(CLI::App& app, Options& options, DeviceWish wish) {
  std::string text = "cpu:0, gpu:0, an index, a part of a name, cpu or gpu (see `samebytes devices`);\n";
  if (wish != DeviceWish::one) text += "several in a comma list work together; ";
  if (wish == DeviceWish::together) text += "all: every one there is;\n";
  if (wish == DeviceWish::one_after_the_other) text += "all: one after the other;\n";
  app.add_option("--device", options.device, text + "default: the best device found")
      ->option_text(wish == DeviceWish::one ? "DEVICE" : "DEVICES");
  if (wish != DeviceWish::one)
    app.add_option("--split-device", options.devices.split,
                   "parts of one device that work together, by their cores, such as 1,1; default: not split")
        ->option_text("CORES")
        ->delimiter(',')
        ->check(CLI::Range(1, 4096));
  if (wish != DeviceWish::one)
    app.add_flag("--explain", options.devices.explain,
                 "at the end the plan of a step as text: each launch, its device, what it moves and awaits,\n"
                 "and why work is where it is");
  app.add_flag("--fallback", options.devices.fallback,
               "what a device cannot run (a kernel that does not build, f64 without double) is run by\n"
               "another one, a CPU device if need be, and counted in the summary; default: it is an error");
  app.add_option("--threads", options.threads, "cores that a CPU device may use; default: all of them")
      ->option_text("N")
      ->check(CLI::Range(1, 4096));
  add_co_execution(app, options);
  app.add_option("--seed", options.seed, "of everything random; the same seed gives the same bytes; default: 1")
      ->option_text("N");
}

bool is_list(const std::string& device) { return device == "all" || device.find(',') != std::string::npos; }

void expect_one_device(const Options& options, const std::string& verb) {
  if (is_list(options.device))
    throw UsageError(verb + " uses one device, --device " + options.device +
                     " names several; train and bench take them");
}

EngineOptions device_wish(const Options& options, const std::string& device) {
  EngineOptions wish;
  wish.split = options.devices.split;
  if (!is_list(device)) {
    wish.device = device;
    return wish;
  }
  for (std::size_t begin = 0; begin <= device.size();) {
    const std::size_t end = std::min(device.find(',', begin), device.size());
    wish.devices.push_back(device.substr(begin, end - begin));
    begin = end + 1;
  }
  return wish;
}

}  // namespace samebytes::cli
