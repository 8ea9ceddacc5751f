// The file of a memory snapshot. Texts that come often (ops, layers) stand once in "texts", and lists of launches,
// temporaries and events refer to them by number; docs/memory.md has the fields.
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/json.h"
#include "samebytes/error.h"
#include "samebytes/io/files.h"
#include "samebytes/memory_snapshot.h"

namespace samebytes {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMemoryFormat = "samebytes-memory";
constexpr std::int64_t kVersion = 1;

class Texts {
 public:
  std::size_t number(const std::string& text) {
    const auto [found, is_new] = numbers_.try_emplace(text, numbers_.size());
    if (is_new) list_.push_back(text);
    return found->second;
  }
  Json take() { return std::move(list_); }

 private:
  std::unordered_map<std::string, std::size_t> numbers_;
  Json list_ = Json::array();
};

Json by_category(const MemoryByCategory& bytes) {
  Json json = Json::object();
  for (std::size_t c = 0; c < kMemoryCategories; ++c) json[name_of(static_cast<MemoryCategory>(c))] = bytes.bytes[c];
  return json;
}

// Reads and says where it stands: "plans[0].launches[3][1]".
class Value {
 public:
  Value(const Json& json, std::string place, const std::string& path)
      : json_(json), place_(std::move(place)), path_(path) {}

  [[noreturn]] void fail(const std::string& expected) const {
    std::string found = json_.is_object() ? "an object" : json_.is_array() ? "a list" : detail::to_line(json_);
    if (json_.is_array()) found += " of " + std::to_string(json_.size());
    throw IoError("memory snapshot: " + path_ + ": " + (place_.empty() ? std::string("the whole") : place_) +
                      ": expected " + expected + ", found " + found,
                  path_);
  }
  Value at(const char* key) const {
    if (!json_.is_object()) fail("an object");
    const auto found = json_.find(key);
    if (found == json_.end()) fail(std::string("an object with \"") + key + "\"");
    return {*found, place_.empty() ? key : place_ + "." + key, path_};
  }
  std::size_t size() const {
    if (!json_.is_array()) fail("a list");
    return json_.size();
  }
  Value operator[](std::size_t i) const { return {json_[i], place_ + "[" + std::to_string(i) + "]", path_}; }
  // A list of exactly `count`.
  const Value& of(std::size_t count) const {
    if (size() != count) fail("a list of " + std::to_string(count));
    return *this;
  }
  std::int64_t integer() const {
    if (!json_.is_number_integer()) fail("a whole number");
    return json_.get<std::int64_t>();
  }
  std::size_t bytes() const {
    if (!json_.is_number_unsigned()) fail("a number of bytes");
    return json_.get<std::size_t>();
  }
  int index() const {
    if (!json_.is_number_unsigned() || json_.get<std::uint64_t>() > 0x7fffffffu) fail("a number from 0 on");
    return json_.get<int>();
  }
  double number() const {
    if (!json_.is_number()) fail("a number");
    return json_.get<double>();
  }
  bool truth() const {
    if (!json_.is_boolean()) fail("true or false");
    return json_.get<bool>();
  }
  const std::string& text() const {
    if (!json_.is_string()) fail("a text");
    return json_.get_ref<const std::string&>();
  }
  MemoryCategory category() const {
    if (!json_.is_number_unsigned() || json_.get<std::uint64_t>() >= kMemoryCategories)
      fail("the number of a category, below " + std::to_string(kMemoryCategories));
    return static_cast<MemoryCategory>(json_.get<int>());
  }
  const std::string& one_of(const std::vector<std::string>& texts) const {
    if (!json_.is_number_unsigned() || json_.get<std::uint64_t>() >= texts.size())
      fail("the number of a text, below " + std::to_string(texts.size()));
    return texts[json_.get<std::size_t>()];
  }
  MemoryByCategory categories() const {
    MemoryByCategory result;
    for (std::size_t c = 0; c < kMemoryCategories; ++c)
      result.bytes[c] = at(name_of(static_cast<MemoryCategory>(c))).bytes();
    return result;
  }

 private:
  const Json& json_;
  std::string place_;
  const std::string& path_;
};

}  // namespace

const char* name_of(MemoryCategory category) {
  static constexpr const char* kNames[kMemoryCategories] = {"parameters", "gradients", "optimizer", "activations",
                                                            "inputs",     "library",   "other"};
  return kNames[static_cast<std::size_t>(category)];
}

void save_memory_snapshot(const std::string& path, const MemorySnapshot& snapshot) {
  Texts texts;
  const MemoryReport& r = snapshot.report;
  Json json{{"format", kMemoryFormat},
            {"version", kVersion},
            {"device", snapshot.device},
            {"live_bytes", r.live_bytes},
            {"cached_bytes", r.cached_bytes},
            {"adopted_bytes", r.adopted_bytes},
            {"library_bytes", r.library_bytes},
            {"limit_bytes", r.limit_bytes},
            {"allocations", r.allocations},
            {"process_bytes", snapshot.process_bytes},
            {"process_peak_bytes", snapshot.process_peak_bytes},
            {"live", by_category(r.live_by_category)},
            {"peak",
             {{"bytes", r.peak_bytes},
              {"op", r.peak_cause},
              {"layer", r.peak_layer},
              {"by_category", by_category(r.peak_by_category)}}},
            {"step", by_category(snapshot.step)}};
  Json layers = Json::array(), arrays = Json::array(), plans = Json::array(), events = Json::array();
  for (const MemoryLayer& layer : snapshot.layers)
    layers.push_back({{"name", layer.name},
                      {"parameters", layer.parameters},
                      {"gradients", layer.gradients},
                      {"optimizer", layer.optimizer},
                      {"activations", layer.activations}});
  for (const MemoryArray& array : snapshot.arrays)
    arrays.push_back(
        Json::array({array.name, texts.number(array.layer), static_cast<int>(array.category), array.bytes}));
  for (const MemoryPlan& plan : snapshot.plans) {
    Json launches = Json::array(), temporaries = Json::array();
    for (const MemoryLaunch& l : plan.launches)
      launches.push_back(
          Json::array({texts.number(l.op), texts.number(l.layer), l.is_gradient, l.activations, l.gradients}));
    for (const MemoryTemporary& t : plan.temporaries)
      temporaries.push_back(Json::array({texts.number(t.op), texts.number(t.layer), static_cast<int>(t.category),
                                         t.bytes, t.offset, t.segment, t.first, t.last}));
    plans.push_back({{"arena_bytes", plan.arena_bytes},
                     {"last_used", plan.last_used},
                     {"launches", std::move(launches)},
                     {"temporaries", std::move(temporaries)}});
  }
  for (const MemoryEvent& e : snapshot.events)
    events.push_back(Json::array({e.seconds, static_cast<int>(e.category), e.bytes, texts.number(e.what)}));
  json["texts"] = texts.take();
  json["layers"] = std::move(layers);
  json["arrays"] = std::move(arrays);
  json["plans"] = std::move(plans);
  json["events"] = std::move(events);
  json["events_dropped"] = snapshot.events_dropped;
  io::write_file(path, detail::to_line(json));
}

MemorySnapshot load_memory_snapshot(const std::string& path) {
  const std::vector<std::byte> bytes = io::read_file(path);
  const char* const begin = reinterpret_cast<const char*>(bytes.data());
  Json json;
  try {
    json = detail::parse_json<Json>("memory snapshot", path, {begin, bytes.size()});
  } catch (const IoError& error) {
    throw IoError(
        std::string(error.what()) + "; --memory-snapshot writes such files, this one is damaged or of another kind",
        path, error.offset());
  }
  const Value root(json, "", path);
  if (root.at("format").text() != kMemoryFormat) root.at("format").fail(std::string("\"") + kMemoryFormat + "\"");
  if (root.at("version").integer() != kVersion) root.at("version").fail(std::to_string(kVersion));
  MemorySnapshot s;
  s.device = root.at("device").text();
  MemoryReport& r = s.report;
  r.live_bytes = root.at("live_bytes").bytes();
  r.cached_bytes = root.at("cached_bytes").bytes();
  r.adopted_bytes = root.at("adopted_bytes").bytes();
  r.library_bytes = root.at("library_bytes").bytes();
  r.limit_bytes = root.at("limit_bytes").bytes();
  r.allocations = root.at("allocations").bytes();
  s.process_bytes = root.at("process_bytes").bytes();
  s.process_peak_bytes = root.at("process_peak_bytes").bytes();
  r.live_by_category = root.at("live").categories();
  const Value peak = root.at("peak");
  r.peak_bytes = peak.at("bytes").bytes();
  r.peak_cause = peak.at("op").text();
  r.peak_layer = peak.at("layer").text();
  r.peak_by_category = peak.at("by_category").categories();
  s.step = root.at("step").categories();
  std::vector<std::string> texts;
  const Value list = root.at("texts");
  for (std::size_t i = 0; i < list.size(); ++i) texts.push_back(list[i].text());
  const Value layers = root.at("layers"), arrays = root.at("arrays"), plans = root.at("plans"),
              events = root.at("events");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Value layer = layers[i];
    s.layers.push_back({layer.at("name").text(), layer.at("parameters").bytes(), layer.at("gradients").bytes(),
                        layer.at("optimizer").bytes(), layer.at("activations").bytes()});
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Value a = arrays[i].of(4);
    s.arrays.push_back({a[0].text(), a[1].one_of(texts), a[2].category(), a[3].bytes()});
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    MemoryPlan& plan = s.plans.emplace_back();
    plan.arena_bytes = plans[i].at("arena_bytes").bytes();
    plan.last_used = plans[i].at("last_used").bytes();
    const Value launches = plans[i].at("launches"), temporaries = plans[i].at("temporaries");
    for (std::size_t k = 0; k < launches.size(); ++k) {
      const Value l = launches[k].of(5);
      plan.launches.push_back({l[0].one_of(texts), l[1].one_of(texts), l[2].truth(), l[3].bytes(), l[4].bytes()});
    }
    for (std::size_t k = 0; k < temporaries.size(); ++k) {
      const Value t = temporaries[k].of(8);
      MemoryTemporary& one = plan.temporaries.emplace_back(MemoryTemporary{t[0].one_of(texts), t[1].one_of(texts),
                                                                           t[2].category(), t[3].bytes(), t[4].bytes(),
                                                                           t[5].index(), t[6].index(), t[7].index()});
      if (one.first > one.last || one.last >= static_cast<int>(plan.launches.size()))
        t.fail("launches from " + std::to_string(one.first) + " on, below " + std::to_string(plan.launches.size()));
    }
  }
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Value e = events[i].of(4);
    s.events.push_back({e[0].number(), e[1].category(), e[2].integer(), e[3].one_of(texts)});
  }
  s.events_dropped = root.at("events_dropped").bytes();
  return s;
}

}  // namespace samebytes
