// Losses made of fused ops against their definitions in double, their gradients numerically, at corners and far out.
#include <gtest/gtest.h>

#include <cmath>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

class LossFunctions : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(LossFunctions);

constexpr Reduction kNone = Reduction::none;

double huber_of(double d, double delta) {
  return std::fabs(d) <= delta ? d * d / 2 : delta * (std::fabs(d) - delta / 2);
}
double bce_of(double p, double t) { return -(t * std::log(p) + (1 - t) * std::log(1 - p)); }
double focal_of(double x, double t, double alpha, double gamma) {
  const double p = 1 / (1 + std::exp(-x)), hit = p * t + (1 - p) * (1 - t);
  return bce_of(p, t) * std::pow(1 - hit, gamma) * (alpha < 0 ? 1 : alpha * t + (1 - alpha) * (1 - t));
}

// Of two numbers in (0, 1).
struct Row {
  const char* name;
  Array (*op)(const Array& a, const Array& b);
  double (*reference)(double a, double b);
};
const Row kRows[] = {
    {"l1", [](const Array& a, const Array& b) { return l1_loss(a, b, kNone); },
     [](double a, double b) { return std::fabs(a - b); }},
    {"smooth_l1",
     [](const Array& a, const Array& b) { return smooth_l1_loss(a, b, {.beta = 0.4, .reduction = kNone}); },
     [](double a, double b) { return huber_of(a - b, 0.4) / 0.4; }},
    {"smooth_l1 of beta 0",
     [](const Array& a, const Array& b) { return smooth_l1_loss(a, b, {.beta = 0, .reduction = kNone}); },
     [](double a, double b) { return std::fabs(a - b); }},
    {"huber", [](const Array& a, const Array& b) { return huber_loss(a, b, {.delta = 0.3, .reduction = kNone}); },
     [](double a, double b) { return huber_of(a - b, 0.3); }},
    {"bce", [](const Array& a, const Array& b) { return bce_loss(a, b, kNone); }, bce_of},
    {"kl_div", [](const Array& a, const Array& b) { return kl_div(a, b, {.reduction = kNone}); },
     [](double a, double b) { return b * (std::log(b) - a); }},
    {"kl_div of a logarithm",
     [](const Array& a, const Array& b) { return kl_div(a, b, {.log_target = true, .reduction = kNone}); },
     [](double a, double b) { return std::exp(b) * (b - a); }},
    {"gaussian_nll",
     [](const Array& a, const Array& b) {
       return gaussian_nll_loss(a, b, a * 2.0, {.full = true, .reduction = kNone});
     },
     [](double a, double b) {
       return 0.5 * (std::log(2 * a) + (a - b) * (a - b) / (2 * a)) + 0.5 * std::log(2 * M_PI);
     }},
    {"sigmoid_focal", [](const Array& a, const Array& b) { return sigmoid_focal_loss(a * 4.0 - 2.0, b); },
     [](double a, double b) { return focal_of(a * 4 - 2, b, 0.25, 2); }},
    {"sigmoid_focal without weights",
     [](const Array& a, const Array& b) { return sigmoid_focal_loss(a * 4.0 - 2.0, b, {.alpha = -1, .gamma = 1.5}); },
     [](double a, double b) { return focal_of(a * 4 - 2, b, -1, 1.5); }},
};

Array all_of(const Array& a, const Array& b) {
  std::vector<Array> losses;
  for (const Row& row : kRows) losses.push_back(row.op(a, b));
  return stack(losses);
}

TEST_P(LossFunctions, of_single_elements_are_their_definitions) {
  const auto a = random_values(65, 1, 0.02, 0.98), b = random_values(65, 2, 0.02, 0.98);
  std::vector<double> want;
  for (const Row& row : kRows)
    for (std::size_t i = 0; i < a.size(); ++i) want.push_back(row.reference(a[i], b[i]));
  EXPECT_TRUE(all_close(all_of(real_array(a, {5, 13}, f32), real_array(b, {5, 13}, f32)), want, 1e-5));
}

TEST_P(LossFunctions, reductions_are_sum_and_mean) {
  const Array a = array({1, 2, 3, 5}, {2, 2}), b = array({1, 0, 6, 1}, {2, 2});
  EXPECT_NEAR(l1_loss(a, b).value(), 9.0 / 4, 1e-6);
  EXPECT_NEAR(l1_loss(a, b, Reduction::sum).value(), 9, 1e-6);
  EXPECT_NEAR(huber_loss(a, b).value(), (1.5 + 2.5 + 3.5) / 4, 1e-6);
  const double divergence = kl_div(a, b, {.log_target = true, .reduction = Reduction::sum}).value();
  EXPECT_NEAR(kl_div(a, b, {.log_target = true, .batch_mean = true}).value(), divergence / 2, 1e-3);
  EXPECT_NEAR(kl_div(a, b, {.log_target = true}).value(), divergence / 4, 1e-3);
  EXPECT_TRUE(std::isnan(l1_loss(empty({0}), empty({0})).value()));
  EXPECT_EQ(huber_loss(astype(a, bf16), astype(b, f16)).dtype(), f32);
}

TEST_P(LossFunctions, gradients_of_single_elements_agree_with_differences) {
  SAMEBYTES_NEEDS_F64();
  EXPECT_TRUE(check_gradients([](auto x) { return all_of(x[0], x[1]); },
                              {random_input("a", {7}, 1, 0.02, 0.98), random_input("b", {7}, 2, 0.02, 0.98)}));
}

TEST_P(LossFunctions, margins_are_their_definitions) {
  const auto x = random_values(37, 1, -2, 2), y = random_values(37, 2, -2, 2);
  std::vector<float> signs(37);
  std::vector<double> hinge, embedding, ranking;
  for (std::size_t i = 0; i < x.size(); ++i) {
    signs[i] = i % 3 == 0 ? 1.0f : -1.0f;
    hinge.push_back(std::max(0.0, 1 - signs[i] * x[i]));
    embedding.push_back(signs[i] == 1 ? x[i] : std::max(0.0, 0.5 - x[i]));
    ranking.push_back(std::max(0.0, 0.2 - signs[i] * (x[i] - y[i])));
  }
  const Array t = array(signs, {37}), a = real_array(x, {37}, f32), b = real_array(y, {37}, f32);
  EXPECT_TRUE(all_close(hinge_loss(a, t, {.reduction = kNone}), hinge, 1e-6));
  EXPECT_TRUE(all_close(hinge_embedding_loss(a, t, {.margin = 0.5, .reduction = kNone}), embedding, 1e-6));
  EXPECT_TRUE(all_close(margin_ranking_loss(a, b, astype(t, i32), {.margin = 0.2, .reduction = kNone}), ranking, 1e-6));
  EXPECT_NEAR(margin_ranking_loss(array({1, 2}), array({3, 1}), ones({2})).value(), 1, 1e-6);
  if (!has_f64()) return;
  EXPECT_TRUE(check_gradients(
      [&](auto v) {
        return stack({hinge_loss(v[0], t, {.reduction = kNone}), hinge_embedding_loss(v[0], t, {.reduction = kNone}),
                      margin_ranking_loss(v[0], v[1], t, {.margin = 0.2, .reduction = kNone})});
      },
      {{"a", {37}, x}, {"b", {37}, y}}));
}

struct Labelled {
  std::vector<double> x = random_values(5 * 7, 1, -2, 2), weight = random_values(7, 2, 0.2, 1.5);
  std::vector<std::int32_t> label{0, 6, 3, 3, 2};
  double at(std::size_t r, std::size_t c) const { return x[r * 7 + c]; }
  double log_probability(std::size_t r, std::size_t c) const {
    double total = 0;
    for (std::size_t j = 0; j < 7; ++j) total += std::exp(at(r, j));
    return at(r, c) - std::log(total);
  }
  Array labels() const { return array(label, {5}); }
};

TEST_P(LossFunctions, nll_is_the_chosen_log_probability) {
  const Labelled in;
  std::vector<double> plain, weighted;
  double total = 0, weights = 0;
  for (std::size_t r = 0; r < 5; ++r) {
    const std::size_t c = static_cast<std::size_t>(in.label[r]);
    plain.push_back(-in.at(r, c));
    const bool counts = in.label[r] != 6;
    weighted.push_back(counts ? -in.weight[c] * in.at(r, c) : 0);
    total += weighted.back();
    weights += counts ? in.weight[c] : 0;
  }
  const Array x = real_array(in.x, {5, 7}, f32), w = real_array(in.weight, {7}, f32);
  EXPECT_TRUE(all_close(nll_loss(x, in.labels(), {.reduction = kNone}), plain, 1e-6));
  EXPECT_TRUE(
      all_close(nll_loss(x, astype(in.labels(), u8), {.ignore_index = 6, .class_weight = w, .reduction = kNone}),
                weighted, 1e-6));
  EXPECT_NEAR(nll_loss(x, in.labels(), {.ignore_index = 6, .class_weight = w}).value(), total / weights, 1e-5);
  const Array logits = x * 1.5;
  const CrossEntropyOptions options{.ignore_index = 3, .class_weight = w};
  EXPECT_NEAR(nll_loss(log_softmax(logits), in.labels(), {.ignore_index = 3, .class_weight = w}).value(),
              cross_entropy(logits, in.labels(), options).value(), 1e-5);
  EXPECT_NEAR(nll_loss(x, in.labels(), {.ignore_index = 3}).value(), (plain[0] + plain[1] + plain[4]) / 3, 1e-5);
  const Array wrong = array(std::vector<std::int32_t>{0, 7, -1, 3, -100}, {5});
  const auto losses = nll_loss(x, wrong, {.ignore_index = -100, .reduction = kNone}).to_vector<double>();
  EXPECT_TRUE(std::isnan(losses[1]) && std::isnan(losses[2]));
  EXPECT_EQ(losses[4], 0);
}

TEST_P(LossFunctions, of_labels_are_their_definitions) {
  const Labelled in;
  std::vector<double> focal, margin, square_margin;
  for (std::size_t r = 0; r < 5; ++r) {
    const std::size_t c = static_cast<std::size_t>(in.label[r]);
    const double lp = in.log_probability(r, c);
    focal.push_back(-in.weight[c] * std::pow(1 - std::exp(lp), 2) * lp);
    double one = 0, two = 0;
    for (std::size_t j = 0; j < 7; ++j) {
      const double over = j == c ? 0 : std::max(0.0, 1 - in.at(r, c) + in.at(r, j));
      one += over / 7;
      two += in.weight[c] * over * over / 7;
    }
    margin.push_back(one);
    square_margin.push_back(two);
  }
  const Array x = real_array(in.x, {5, 7}, f32), w = real_array(in.weight, {7}, f32);
  EXPECT_TRUE(all_close(focal_loss(x, in.labels(), {.class_weight = w, .reduction = kNone}), focal, 1e-5));
  EXPECT_TRUE(all_close(multi_margin_loss(x, in.labels(), {.reduction = kNone}), margin, 1e-5));
  EXPECT_TRUE(all_close(multi_margin_loss(x, in.labels(), {.p = 2, .class_weight = w, .reduction = kNone}),
                        square_margin, 1e-5));
  EXPECT_NEAR(focal_loss(x, in.labels(), {.gamma = 0}).value(), cross_entropy(x, in.labels()).value(), 1e-5);
  if (!has_f64()) return;
  EXPECT_TRUE(check_gradients(
      [&](auto v) {
        const Array t = in.labels(), each = astype(w, f64);
        return stack({nll_loss(v[0], t, {.ignore_index = 3, .class_weight = each}), nll_loss(v[0], t),
                      focal_loss(v[0], t, {.gamma = 1.5, .class_weight = each}), focal_loss(v[0], t, {.gamma = 1}),
                      multi_margin_loss(v[0], t), multi_margin_loss(v[0], t, {.p = 2, .class_weight = each})});
      },
      {{"scores", {5, 7}, in.x}}));
}

TEST_P(LossFunctions, classes_and_distances_may_lie_along_any_axis) {
  const Labelled in;
  const Array x = real_array(in.x, {5, 7}, f32), w = real_array(in.weight, {7}, f32), t = in.labels();
  const Array across = contiguous(transpose(x));  // [7, 5], the classes first
  EXPECT_TRUE(all_close(focal_loss(across, t, {.class_weight = w, .reduction = kNone, .axis = 0}),
                        focal_loss(x, t, {.class_weight = w, .reduction = kNone}).to_vector<double>(), 1e-6));
  EXPECT_TRUE(all_close(multi_margin_loss(across, t, {.p = 2, .reduction = kNone, .axis = -2}),
                        multi_margin_loss(x, t, {.p = 2, .reduction = kNone}).to_vector<double>(), 1e-6));
  EXPECT_TRUE(all_close(nll_loss(across, t, {.reduction = kNone, .axis = 0}),
                        nll_loss(x, t, {.reduction = kNone}).to_vector<double>(), 1e-6));
  const Array y = uniform({5, 7}, -1, 1), z = uniform({5, 7}, -1, 1);
  EXPECT_TRUE(
      all_close(triplet_margin_loss(across, transpose(y), transpose(z), {.swap = true, .reduction = kNone, .axis = 0}),
                triplet_margin_loss(x, y, z, {.swap = true, .reduction = kNone}).to_vector<double>(), 1e-5));
  EXPECT_ERROR(focal_loss(x, t, {.axis = 2}), ArgumentError, "focal_loss: axis 2 is out of range for src f32 [5, 7]");
  EXPECT_ERROR(triplet_margin_loss(x, y, z, {.axis = -3}), ArgumentError,
               "triplet_margin_loss: axis -3 is out of range for src f32 [5, 7]");
}

TEST_P(LossFunctions, of_embeddings_are_their_definitions) {
  const std::int64_t rows = 4, columns = 9;
  const auto x = random_values(rows * columns, 1), y = random_values(rows * columns, 2),
             z = random_values(rows * columns, 3);
  const std::vector<float> signs{1, -1, -1, 1};
  const auto row = [&](const std::vector<double>& v, std::int64_t r, std::int64_t j) {
    return v[static_cast<std::size_t>(r * columns + j)];
  };
  const auto cosine = [&](const std::vector<double>& v, std::int64_t r, const std::vector<double>& w, std::int64_t s) {
    double vw = 0, vv = 0, ww = 0;
    for (std::int64_t j = 0; j < columns; ++j) {
      vw += row(v, r, j) * row(w, s, j);
      vv += row(v, r, j) * row(v, r, j);
      ww += row(w, s, j) * row(w, s, j);
    }
    return vw / std::sqrt(vv * ww);
  };
  const auto distance = [&](const std::vector<double>& v, const std::vector<double>& w, std::int64_t r) {
    double square = 0;
    for (std::int64_t j = 0; j < columns; ++j) square += std::pow(row(v, r, j) - row(w, r, j) + 1e-6, 2);
    return std::sqrt(square);
  };
  std::vector<double> cosines, embedding, triplet, swapped, contrast;
  for (std::int64_t r = 0; r < rows; ++r) {
    const double c = cosine(x, r, y, r), near = distance(x, y, r), far = distance(x, z, r);
    cosines.push_back(c);
    embedding.push_back(signs[static_cast<std::size_t>(r)] == 1 ? 1 - c : std::max(0.0, c - 0.1));
    triplet.push_back(std::max(0.0, near - far + 1));
    swapped.push_back(std::max(0.0, near - std::min(far, distance(y, z, r)) + 0.5));
    double total = 0;
    for (std::int64_t s = 0; s < rows; ++s)
      if (s != r) total += std::exp(cosine(x, r, x, s) / 0.3);
    contrast.push_back(std::log(total) - cosine(x, r, x, (r + rows / 2) % rows) / 0.3);
  }
  const Shape shape{rows, columns};
  const auto all = [&](const Array& a, const Array& b, const Array& c, const Array& t) {
    return stack({cosine_similarity(a, b), cosine_embedding_loss(a, b, t, {.margin = 0.1, .reduction = kNone}),
                  triplet_margin_loss(a, b, c, {.reduction = kNone}),
                  triplet_margin_loss(a, b, c, {.margin = 0.5, .swap = true, .reduction = kNone}),
                  nt_xent_loss(a, {.temperature = 0.3, .reduction = kNone})});
  };
  std::vector<double> want;
  for (const auto& part : {cosines, embedding, triplet, swapped, contrast})
    want.insert(want.end(), part.begin(), part.end());
  const Array t = array(signs, {rows});
  EXPECT_TRUE(
      all_close(all(real_array(x, shape, f32), real_array(y, shape, f32), real_array(z, shape, f32), t), want, 1e-5));
  EXPECT_TRUE(all_close(
      cosine_similarity(transpose(real_array(x, shape, f32)), transpose(real_array(y, shape, f32)), 0), cosines, 1e-5));
  if (!has_f64()) return;
  EXPECT_TRUE(check_gradients([&](auto v) { return all(v[0], v[1], v[2], t); },
                              {{"a", shape, x}, {"b", shape, y}, {"c", shape, z}}));
}

TEST_P(LossFunctions, gradients_are_finite_at_corners_and_far_out) {
  const Array x = array({0, 1, 0, 1, 1e30f, -1e30f, 100, -100}), t = array({0, 1, 1, 0, 0, 1, 0, 1});
  const Array zero = zeros({2, 3}), some = array({1, 0, 0, 0, 2, 0}, {2, 3});
  const auto is_finite = [&](const Array& loss, const Array& input) {
    for (const double v : gradients(sum(loss), {&input, 1})[0].to_vector<double>())
      if (!std::isfinite(v)) return false;
    return true;
  };
  EXPECT_TRUE(is_finite(sigmoid_focal_loss(x, t, {.gamma = 0.5}), x));
  EXPECT_TRUE(is_finite(huber_loss(x, t), x));
  EXPECT_TRUE(is_finite(smooth_l1_loss(x, t), x));
  EXPECT_TRUE(is_finite(kl_div(x, t), t));
  EXPECT_TRUE(is_finite(cosine_similarity(zero, some), zero));
  EXPECT_TRUE(is_finite(cosine_embedding_loss(zero, some, ones({2})), zero));
  EXPECT_TRUE(is_finite(triplet_margin_loss(zero, zero, some, {.eps = 0}), zero));
  EXPECT_TRUE(is_finite(nt_xent_loss(zero), zero));
  const Array certain = array({0, 1, 0, 1});
  const Array truth = array({0, 1, 1, 0});
  EXPECT_TRUE(is_finite(bce_loss(certain, truth), certain));
  EXPECT_TRUE(all_close(bce_loss(certain, truth, kNone), std::vector<double>{0, 0, 100, 100}, 1e-6));
  EXPECT_TRUE(std::isnan(bce_loss(array({1.5f}), array({1.0f})).value()));
  EXPECT_TRUE(all_close(kl_div(x, zeros({8}), {.reduction = kNone}), std::vector<double>(8, 0.0), 0));
  // A variance below eps counts as eps, and its gradient does not see that.
  const Array var = array({0.0f});
  EXPECT_NEAR(gradients(gaussian_nll_loss(array({0.0f}), array({0.0f}), var, {.eps = 0.5}), {&var, 1})[0].value(), 1.0,
              1e-5);
}

TEST_P(LossFunctions, modules_pass_their_options_on) {
  const Array a = array({0.2f, 0.6f, 0.9f, 0.4f}, {2, 2}), b = array({0.1f, 0.8f, 0.3f, 0.5f}, {2, 2});
  const Array label = array(std::vector<std::int32_t>{1, 0}, {2}), sign = array({1, -1});
  EXPECT_TRUE(same_bytes(nn::CrossEntropyLoss({.label_smoothing = 0.1f})(a, label),
                         cross_entropy(a, label, {.label_smoothing = 0.1f})));
  EXPECT_TRUE(same_bytes(nn::NllLoss({.ignore_index = 0})(a, label), nll_loss(a, label, {.ignore_index = 0})));
  EXPECT_TRUE(same_bytes(nn::MseLoss()(a, b), mse_loss(a, b)));
  EXPECT_TRUE(same_bytes(nn::L1Loss(Reduction::sum)(a, b), l1_loss(a, b, Reduction::sum)));
  EXPECT_TRUE(same_bytes(nn::HuberLoss({.delta = 0.1})(a, b), huber_loss(a, b, {.delta = 0.1})));
  EXPECT_TRUE(same_bytes(nn::CosineEmbeddingLoss()(a, b, sign), cosine_embedding_loss(a, b, sign)));
  EXPECT_EQ(nn::CosineEmbeddingLoss().options().margin, 0.0);
  EXPECT_EQ(nn::HingeEmbeddingLoss().options().margin, 1.0);
  EXPECT_TRUE(same_bytes(nn::TripletMarginLoss({.swap = true})(a, b, a), triplet_margin_loss(a, b, a, {.swap = true})));
  EXPECT_TRUE(same_bytes(nn::GaussianNllLoss()(a, b, b), gaussian_nll_loss(a, b, b)));
  EXPECT_TRUE(same_bytes(nn::NtXentLoss({.temperature = 0.1})(a), nt_xent_loss(a, {.temperature = 0.1})));
}

TEST_P(LossFunctions, wrong_arguments_are_named) {
  const Array a = ones({2, 3}), label = zeros({2}, i32);
  EXPECT_ERROR(l1_loss(a, ones({3})), ArgumentError, "l1_loss: the shapes differ: a is f32 [2, 3], b is f32 [3]");
  EXPECT_ERROR(huber_loss(a, a, {.delta = 0}), ArgumentError, "huber_loss: delta must be above 0, got 0.000000");
  EXPECT_ERROR(smooth_l1_loss(a, a, {.beta = -1}), ArgumentError,
               "smooth_l1_loss: beta must be 0 or more, got -1.000000");
  EXPECT_ERROR(nll_loss(a, zeros({3}, i32)), ArgumentError,
               "nll_loss: target must be i32, i64 or u8 [2], log_probability is f32 [2, 3], target is i32 [3]");
  EXPECT_ERROR(nll_loss(a, zeros({2})), ArgumentError,
               "nll_loss: target must be i32, i64 or u8 [2], log_probability is f32 [2, 3], target is f32 [2]");
  EXPECT_ERROR(nll_loss(a, label, {.class_weight = ones({2})}), ArgumentError,
               "nll_loss: class_weight must be floating [3], class_weight is f32 [2]");
  EXPECT_ERROR(multi_margin_loss(a, label, {.p = 3}), ArgumentError, "multi_margin_loss: p must be 1 or 2, got 3");
  EXPECT_ERROR(focal_loss(a, label, {.gamma = -1}), ArgumentError,
               "focal_loss: gamma must be 0 or more, got -1.000000");
  EXPECT_ERROR(hinge_loss(a, label), ArgumentError,
               "hinge_loss: the shapes differ: score is f32 [2, 3], target is i32 [2]");
  EXPECT_ERROR(cosine_similarity(a, a, 2), ArgumentError,
               "cosine_similarity: axis 2 is out of range, a is f32 [2, 3], b is f32 [2, 3]");
  EXPECT_ERROR(cosine_embedding_loss(a, a, a), ArgumentError,
               "cosine_embedding_loss: target must be [2], a is f32 [2, 3], target is f32 [2, 3]");
  EXPECT_ERROR(gaussian_nll_loss(a, a, ones({2})), ArgumentError,
               "gaussian_nll_loss: var must be floating, of the shape of mean f32 [2, 3] or with a last axis of 1, var "
               "is f32 [2]");
  EXPECT_ERROR(nt_xent_loss(ones({3, 2})), ArgumentError, "nt_xent_loss: z must be floating [2N, D], z is f32 [3, 2]");
  EXPECT_ERROR(nt_xent_loss(a, {.temperature = 0}), ArgumentError,
               "nt_xent_loss: temperature must be above 0, got 0.000000");
}

class SmallShapesLossFunctionsTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesLossFunctionsTest);

TEST_P(SmallShapesLossFunctionsTest, forward_and_backward) {
  using In = std::span<const Array>;
  const Array labels = array(std::vector<std::int32_t>{0, 6, 2}, {3});
  run([&](In x) { return nll_loss(x[0], labels, {.ignore_index = 2}) + multi_margin_loss(x[0], labels); }, {{3, 7}});
  run([](In x) { return cosine_similarity(x[0], x[1]) + nt_xent_loss(x[0]); }, {{4, 5}, {4, 5}});
}

}  // namespace
}  // namespace samebytes::testing
