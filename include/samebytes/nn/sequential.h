// Modules made of modules: Sequential, ModuleList, Residual, and Lambda, which wraps any function.
// A container owns its children: they move into it, and a copy of the container copies them.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "samebytes/nn/module.h"

namespace samebytes::nn {

template <class T>
concept ModuleLike = std::derived_from<std::remove_cvref_t<T>, Module>;

// Owns a module of any type, or none; copying it copies the module. Throws ArgumentError if the type is not copyable.
class AnyModule {
 public:
  AnyModule() = default;
  template <ModuleLike M>
  static AnyModule of(M&& module) {
    static_assert(!std::is_lvalue_reference_v<M>,
                  "a layer moves into a container: std::move(layer), or nn::clone(layer) for one of its own, or "
                  "nn::tied(layer) for one on the same parameters");
    using T = std::remove_cvref_t<M>;
    AnyModule result;
    result.module_ = std::make_unique<T>(std::forward<M>(module));
    result.copied_ = [](const Module& from) -> std::unique_ptr<Module> {
      if constexpr (std::copy_constructible<T>)
        return std::make_unique<T>(static_cast<const T&>(from));
      else
        throw_without_copies(from);
    };
    return result;
  }
  AnyModule(const AnyModule& other)
      : module_(other.module_ ? other.copied_(*other.module_) : nullptr), copied_(other.copied_) {}
  AnyModule(AnyModule&& other) noexcept = default;
  AnyModule& operator=(const AnyModule& other) {
    if (this != &other) *this = AnyModule(other);
    return *this;
  }
  AnyModule& operator=(AnyModule&& other) noexcept = default;

  explicit operator bool() const { return module_ != nullptr; }
  Module& operator*() const { return *module_; }
  Module* operator->() const { return module_.get(); }

 private:
  [[noreturn]] static void throw_without_copies(const Module& module);
  std::unique_ptr<Module> module_;
  std::unique_ptr<Module> (*copied_)(const Module&) = nullptr;
};

// Applies its children one after the other. They are named "0", "1", ... An ArgumentError from a child is rethrown with
// the child's place before its text. If no argument has options, write braces: `Sequential net{Flatten(), Relu()};`
// (C++ reads parentheses as the declaration of a function).
// For gradient_checkpointing() a block is a child with weights (a parameter of two or more axes) and what follows it up
// to the next one: Linear, ReLU, dropout; or convolution, norm, ReLU, pooling.
class Sequential final : public Module {
 public:
  Sequential() = default;
  template <ModuleLike... Modules>
  requires(sizeof...(Modules) > 0 &&
           !(sizeof...(Modules) == 1 && (std::same_as<std::remove_cvref_t<Modules>, Sequential> &&
                                         ...))) explicit(sizeof...(Modules) == 1) Sequential(Modules&&... modules) {
    modules_.reserve(sizeof...(Modules));
    (add(std::forward<Modules>(modules)), ...);
  }

  // Appends; the returned reference is valid as long as this container's modules.
  template <ModuleLike M>
  std::remove_cvref_t<M>& add(M&& module) {
    modules_.push_back(AnyModule::of(std::forward<M>(module)));
    return static_cast<std::remove_cvref_t<M>&>(*modules_.back());
  }

  std::size_t size() const { return modules_.size(); }
  Module& operator[](std::size_t i) const;  // throws ArgumentError beyond the end

  Array forward(const Array& x) override;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "Sequential"; }

 protected:
  bool is_stack() const override { return true; }

 private:
  Array run(std::size_t i, const Array& x) const;
  std::vector<std::size_t> block_begins() const;
  std::vector<AnyModule> modules_;
};

// Children without an order of calls, named "0", "1", ...: a module's forward() calls list[i](x) as it likes, and its
// visit() names the list once. forward() of the list itself throws ArgumentError.
class ModuleList final : public Module {
 public:
  ModuleList() = default;
  // Appends; the returned reference is valid as long as this container's modules.
  template <ModuleLike M>
  std::remove_cvref_t<M>& add(M&& module) {
    modules_.push_back(AnyModule::of(std::forward<M>(module)));
    return static_cast<std::remove_cvref_t<M>&>(*modules_.back());
  }
  std::size_t size() const { return modules_.size(); }
  Module& operator[](std::size_t i) const;  // throws ArgumentError beyond the end
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "ModuleList"; }

 private:
  std::vector<AnyModule> modules_;
};

// block(x) + x, or block(x) + shortcut(x) (K. He et al., "Deep residual learning", 2015). Children are named "block"
// and "shortcut".
class Residual final : public Module {
 public:
  // The constraint leaves copies and moves to their own constructors, which the check does not see.
  template <ModuleLike Block>
  requires(!std::same_as<std::remove_cvref_t<Block>, Residual>)
      // NOLINTNEXTLINE(bugprone-forwarding-reference-overload)
      explicit Residual(Block&& block)
      : block_(AnyModule::of(std::forward<Block>(block))) {}
  template <ModuleLike Block, ModuleLike Shortcut>
  Residual(Block&& block, Shortcut&& shortcut)
      : block_(AnyModule::of(std::forward<Block>(block))), shortcut_(AnyModule::of(std::forward<Shortcut>(shortcut))) {}

  Array forward(const Array& x) override;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "Residual"; }

 private:
  AnyModule block_, shortcut_;
};

// A module without parameters that wraps any function of one array.
class Lambda final : public Module {
 public:
  explicit Lambda(std::function<Array(const Array&)> function, std::string name = "Lambda")
      : function_(std::move(function)), name_(std::move(name)) {}
  Array forward(const Array& x) override { return function_(x); }
  std::string kind() const override { return name_; }

 private:
  std::function<Array(const Array&)> function_;
  std::string name_;
};

// Applies the modules in `segments` parts of equal length, all but the last one checkpointed (checkpoint.h), as
// PyTorch's function of this name. Throws ArgumentError unless 1 <= segments <= modules.size().
Array checkpoint_sequential(Sequential& modules, int segments, const Array& x);

}  // namespace samebytes::nn
