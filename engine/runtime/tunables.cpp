#include "runtime/tunables.h"

#include <algorithm>

#include "core/hash.h"
#include "runtime/kernel_texts.h"
#include "runtime/tuning.h"

namespace samebytes::detail {
namespace {

using Table = std::vector<Tunable>;
using Candidates = std::vector<std::int64_t>;

struct Legal {
  std::int64_t least, most, step = 1;
};

const std::vector<std::string> kGemmClasses = {"large", "small", "thin", "deep", "batched"};
const std::vector<std::string> kGemmProviders = {"packed", "clblast"};
// If shape and type allow both; minimal filtering was measured on CPU devices only.
const std::vector<std::string> kConvAlgorithms = {"winograd", "direct"}, kGpuConvAlgorithms = {"direct", "winograd"};

// A #define of cl/cpu/<stem>.cl.
void tile(Table& table, const char* group, const char* stem, const char* name, Legal legal, Candidates candidates) {
  table.push_back({.kind = Tunable::Kind::tile,
                   .key = std::string("tiles.f32.") + stem + "." + name,
                   .group = group,
                   .family = stem,
                   .shape_class = {},
                   .name = name,
                   .least = legal.least,
                   .most = legal.most,
                   .step = legal.step,
                   .candidates = std::move(candidates)});
}

// Rows for run.choice(family, shape_class, name), one per class.
void choice(Table& table, const char* family, const std::vector<std::string>& classes, const char* name,
            std::int64_t built_in, Legal legal, const Candidates& candidates) {
  for (const std::string& shape_class : classes)
    table.push_back({.key = std::string("launch.") + family + "." + shape_class + "." + name,
                     .group = family,
                     .family = family,
                     .shape_class = shape_class,
                     .name = name,
                     .built_in = built_in,
                     .least = legal.least,
                     .most = legal.most,
                     .step = legal.step,
                     .candidates = candidates});
}

// Rows for a choice among words; the first word is the built-in one.
void word(Table& table, const char* family, const std::vector<std::string>& classes, const char* name,
          const char* group, const std::vector<std::string>& words) {
  const auto count = static_cast<std::int64_t>(words.size());
  Candidates others;
  for (std::int64_t i = 1; i < count; ++i) others.push_back(i);
  choice(table, family, classes, name, 0, {0, count - 1}, others);
  for (auto row = table.end() - static_cast<std::ptrdiff_t>(classes.size()); row != table.end(); ++row) {
    row->group = group;
    row->words = words;
  }
}

void clblast(Table& table, const char* name, std::int64_t built_in, Legal legal) {
  table.push_back({.kind = Tunable::Kind::clblast,
                   .key = std::string("clblast.f32.") + name,
                   .group = "clblast",
                   .family = "clblast",
                   .shape_class = {},
                   .name = name,
                   .built_in = built_in,
                   .least = legal.least,
                   .most = legal.most,
                   .step = legal.step,
                   .candidates = {}});
}

Table cpu_table() {
  Table t;
  tile(t, "gemm", "gemm", "GEMM_MR", {2, 16, 2}, {6, 4, 10, 8, 12});
  tile(t, "gemm", "gemm", "GEMM_KC", {32, 1024, 32}, {384, 256, 192, 128});
  tile(t, "gemm", "gemm", "GEMM_COLUMN_PANELS", {1, 32}, {8, 4, 12});
  tile(t, "gemm", "gemm", "GEMM_ROW_PANELS", {1, 128}, {20, 40, 128});
  choice(t, "gemm", kGemmClasses, "last_groups", 1, {0, 64}, {2, 3, 5, 8});
  choice(t, "gemm", {"deep", "thin"}, "least_split", 512, {32, 1 << 20, 32}, {256, 1024});

  tile(t, "conv", "conv", "CONV_SOURCE", {4096, 65536, 1024}, {8192, 16384, 24576});
  tile(t, "conv", "conv", "CONV_WEIGHTS", {65536, 262144, 65536}, {131072});
  tile(t, "conv", "conv_filter", "CONV_FILTER_PIXELS", {16, 4096, 16}, {256, 384, 768, 1024});
  choice(t, "conv", {"forward", "input"}, "wanted_groups", 32, {1, 4096}, {48, 16, 24, 64, 96});
  choice(t, "conv", {"forward", "input"}, "least_pixels", 256, {1, 1 << 20}, {128, 512, 64});
  word(t, "conv", {"forward", "input", "filter"}, "algorithm", "conv", kConvAlgorithms);
  choice(t, "conv", {"filter"}, "enough_groups", 16, {1, 4096}, {24, 8, 32, 48});
  choice(t, "conv", {"filter"}, "most_rows", 64, {16, 1024, 16}, {32, 128});
  choice(t, "conv", {"filter"}, "most_columns", 128, {32, 1024, 32}, {64, 256});

  // No local memory, 8 x 8 groups, wide tiles per work-item: the best of a search on PoCL.
  clblast(t, "GEMMK", 0, {0, 1});
  clblast(t, "KREG", 1, {1, 16});
  clblast(t, "KWG", 32, {1, 128});
  clblast(t, "KWI", 2, {1, 32});
  clblast(t, "MDIMA", 8, {1, 64});
  clblast(t, "MDIMC", 8, {1, 64});
  clblast(t, "MWG", 128, {4, 512});
  clblast(t, "NDIMB", 8, {1, 64});
  clblast(t, "NDIMC", 8, {1, 64});
  clblast(t, "NWG", 64, {4, 512});
  clblast(t, "SA", 0, {0, 1});
  clblast(t, "SB", 0, {0, 1});
  clblast(t, "STRM", 0, {0, 1});
  clblast(t, "STRN", 0, {0, 1});
  clblast(t, "VWM", 8, {1, 16});
  clblast(t, "VWN", 8, {1, 16});
  word(t, "gemm", kGemmClasses, "provider", "clblast", kGemmProviders);
  return t;
}

Table gpu_table() {
  Table t;
  choice(t, "gemm", kGemmClasses, "enough_groups", 128, {1, 65536}, {64, 256, 512, 32});
  choice(t, "gemm", {"deep", "thin"}, "least_split", 128, {32, 1 << 20, 32}, {256, 64, 512});
  word(t, "conv", {"forward", "input", "filter"}, "algorithm", "conv", kGpuConvAlgorithms);
  choice(t, "conv", {"filter"}, "enough_groups", 1024, {1, 65536}, {128, 256, 512, 2048});
  word(t, "gemm", kGemmClasses, "provider", "clblast", kGemmProviders);
  return t;
}

// The values of a table's rows, chosen or built in, by the last word of their keys.
class Chosen {
 public:
  Chosen(const Values& values, Personality personality, int vector_width)
      : values_(values), personality_(personality), vector_width_(vector_width) {}
  bool has(const std::string& key) const { return values_.count(key) > 0; }
  std::int64_t operator()(const std::string& key) const {
    if (const auto found = values_.find(key); found != values_.end()) return found->second;
    return built_in_value(*find_tunable(personality_, key), personality_, vector_width_);
  }

 private:
  const Values& values_;
  Personality personality_;
  int vector_width_;
};

std::optional<Clash> clash_of_tiles(const Chosen& chosen, int vector_width) {
  const std::string mr = "tiles.f32.gemm.GEMM_MR", kc = "tiles.f32.gemm.GEMM_KC",
                    columns = "tiles.f32.gemm.GEMM_COLUMN_PANELS";
  const auto constant = [&](const char* name) { return kernel_constant(Personality::cpu, vector_width, "gemm", name); };
  if (chosen.has(mr) && chosen(mr) > constant("GEMM_PITCH"))
    return Clash{mr, "at most " + std::to_string(constant("GEMM_PITCH")) + " on this device",
                 std::to_string(chosen(mr))};
  if (!chosen.has(kc) && !chosen.has(columns)) return {};
  constexpr std::int64_t kMostPacked = 1 << 18;  // a group's packed blocks lie on its thread's stack
  const std::int64_t packed = (constant("GEMM_PITCH") + chosen(columns) * constant("GEMM_NR")) * chosen(kc);
  if (packed > kMostPacked)
    return Clash{chosen.has(kc) ? kc : columns, "at most " + std::to_string(kMostPacked) + " packed values of a group",
                 std::to_string(packed)};
  return {};
}

// The conditions of CLBlast's Xgemm, as its tuner states them, and one of ours: with GEMMK 1 its version 1.5.3 gives
// wrong results if MWG and NWG differ (fixed in 1.6.3).
std::optional<Clash> clash_of_clblast(const Values& values, const Chosen& chosen) {
  const auto any = values.lower_bound("clblast.");
  if (any == values.end() || !any->first.starts_with("clblast.")) return {};
  const auto v = [&](const char* name) { return chosen(std::string("clblast.f32.") + name); };
  const auto multiple = [&](const char* name, std::int64_t of, const char* text) -> std::optional<Clash> {
    if (of > 0 && v(name) % of == 0) return {};
    return Clash{std::string("clblast.f32.") + name, std::string("a multiple of ") + text + " = " + std::to_string(of),
                 std::to_string(v(name))};
  };
  if (auto c = multiple("KWG", v("KWI"), "KWI")) return c;
  if (auto c = multiple("MWG", v("MDIMC") * v("VWM"), "MDIMC * VWM")) return c;
  if (auto c = multiple("NWG", v("NDIMC") * v("VWN"), "NDIMC * VWN")) return c;
  if (auto c = multiple("MWG", v("MDIMA") * v("VWM"), "MDIMA * VWM")) return c;
  if (auto c = multiple("NWG", v("NDIMB") * v("VWN"), "NDIMB * VWN")) return c;
  if (auto c = multiple("KWG", v("MDIMC") * v("NDIMC") / v("MDIMA"), "MDIMC * NDIMC / MDIMA")) return c;
  if (auto c = multiple("KWG", v("MDIMC") * v("NDIMC") / v("NDIMB"), "MDIMC * NDIMC / NDIMB")) return c;
  for (const char* name : {"VWM", "VWN"})
    if ((v(name) & (v(name) - 1)) != 0)
      return Clash{std::string("clblast.f32.") + name, "1, 2, 4, 8 or 16", std::to_string(v(name))};
  const auto equal = [&](const char* name, std::int64_t want, const char* text) -> std::optional<Clash> {
    if (v(name) == want) return {};
    return Clash{std::string("clblast.f32.") + name,
                 std::string(text) + ", " + std::to_string(want) + ", with GEMMK " + std::to_string(v("GEMMK")),
                 std::to_string(v(name))};
  };
  if (v("GEMMK") == 0) return equal("KREG", 1, "one register");
  if (auto c = equal("NWG", v("MWG"), "the value of MWG")) return c;
  if (auto c = equal("MDIMA", v("MDIMC"), "the value of MDIMC")) return c;
  return equal("NDIMB", v("NDIMC"), "the value of NDIMC");
}

}  // namespace

std::string Tunable::legal_text() const {
  std::string text;
  if (!words.empty()) {
    for (std::size_t i = 0; i < words.size(); ++i)
      text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
    return text;
  }
  text = step == 1 ? "a whole number" : "a multiple of " + std::to_string(step);
  return text + " from " + std::to_string(least) + " to " + std::to_string(most);
}

bool Tunable::is_legal(std::int64_t value) const { return value >= least && value <= most && value % step == 0; }

std::string Tunable::value_text(std::int64_t value) const {
  return words.empty() ? std::to_string(value) : words[static_cast<std::size_t>(value)];
}

const std::vector<Tunable>& tunables(Personality personality) {
  static const Table cpu = cpu_table(), gpu = gpu_table();
  return personality == Personality::cpu ? cpu : gpu;
}

const Tunable* find_tunable(Personality personality, std::string_view key) {
  const Table& table = tunables(personality);
  const auto found = std::find_if(table.begin(), table.end(), [&](const Tunable& row) { return row.key == key; });
  return found == table.end() ? nullptr : &*found;
}

std::string table_hash(Personality personality) {
  Hasher hasher;
  for (const Tunable& row : tunables(personality)) {
    hasher.add(std::string_view(row.key));
    hasher.add(std::string_view(row.legal_text()));
  }
  return hex_of(hasher.key().a);
}

std::vector<Values> joint_candidates(Personality personality, std::string_view group) {
  if (personality != Personality::cpu || group != "clblast") return {};
  const auto set = [](std::initializer_list<std::pair<const char*, std::int64_t>> values) {
    Values result;
    for (const auto& [name, value] : values) result[std::string("clblast.f32.") + name] = value;
    return result;
  };
  return {set({{"NWG", 128}}),
          set({{"VWM", 16}}),
          set({{"MWG", 64}}),
          set({{"KWG", 16}}),
          set({{"MDIMA", 4}, {"MDIMC", 4}, {"NDIMB", 4}, {"NDIMC", 4}, {"MWG", 64}}),
          set({{"VWN", 4}, {"NWG", 32}}),
          set({{"GEMMK", 1}, {"KREG", 4}, {"KWG", 1}, {"KWI", 1}, {"MWG", 128}, {"NWG", 128}})};
}

std::int64_t built_in_value(const Tunable& tunable, Personality personality, int vector_width) {
  if (tunable.kind != Tunable::Kind::tile) return tunable.built_in;
  return kernel_constant(personality, vector_width, tunable.family, tunable.name);
}

std::optional<Clash> find_clash(const Values& values, Personality personality, int vector_width) {
  if (personality != Personality::cpu) return {};
  const Chosen chosen(values, personality, vector_width);
  if (auto clash = clash_of_tiles(chosen, vector_width)) return clash;
  return clash_of_clblast(values, chosen);
}

}  // namespace samebytes::detail
