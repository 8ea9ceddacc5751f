// Parameters that are frozen by their names.
#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "samebytes/nn/module.h"

namespace samebytes::nn {
namespace {

std::string full_name(const std::string& path, std::string_view name) {
  return path.empty() || name.empty() ? path + std::string(name) : path + "." + std::string(name);
}

}  // namespace

bool Module::freezes(std::string_view parameter) const {
  return std::find(frozen_parameters_.begin(), frozen_parameters_.end(), parameter) != frozen_parameters_.end();
}

std::size_t Module::freeze_matching(const std::string& pattern) {
  class Freezer final : public Visitor {
   public:
    explicit Freezer(const std::string& pattern) : pattern_(pattern) {}
    void parameter(std::string_view name, const Parameter&, Layout) override {
      if (fnmatch(pattern_.c_str(), full_name(path_, name).c_str(), 0) != 0) return;
      ++count_;
      if (!module_->freezes(name)) module_->frozen_parameters_.emplace_back(name);
    }
    void buffer(std::string_view, const Buffer&) override {}
    void child(std::string_view name, Module& module) override { enter(full_name(path_, name), module); }
    void enter(std::string path, Module& module) {
      std::swap(path, path_);
      Module* const outer = std::exchange(module_, &module);
      module.visit(*this);
      module_ = outer;
      std::swap(path, path_);
    }
    std::size_t count() const { return count_; }

   private:
    const std::string& pattern_;
    std::string path_;
    Module* module_ = nullptr;
    std::size_t count_ = 0;
  } freezer(pattern);
  freezer.enter("", *this);
  return freezer.count();
}

}  // namespace samebytes::nn
