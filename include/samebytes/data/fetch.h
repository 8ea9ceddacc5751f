// Well-known data sets by name: where they are published, and a copy of one in a folder of one's own, checked by the
// reader that will read it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace samebytes::data {

struct KnownSet {
  std::string name;                  // "mnist"
  std::string about;                 // one line: what it is, and its size
  std::vector<std::string> files;    // each plain or with .gz
  std::vector<std::string> places;   // where people get them: addresses of a folder of files, or of an archive
  std::vector<std::string> readers;  // workloads of the command
};

const std::vector<KnownSet>& known_sets();
// Throws ArgumentError, with all names, for one that there is not.
const KnownSet& known_set(const std::string& name);

struct FetchedSet {
  std::string path;                                     // of the folder; of a set of one file, the file's
  std::int64_t training_samples = 0, test_samples = 0;  // of a text: its bytes, and 0
};

// Copies the set's files into `folder`, which must not exist or be empty. `from` is a folder (searched through eight
// deep, without links to folders), an archive (.tar, .tar.gz, .tgz, .zip), or the address of either: https://, http://,
// ftp:// or file://. Files are fetched by the program curl, or wget where that is missing. The folder appears only when
// all files are there and readable. Throws ArgumentError for an unknown name and a folder with something in it; IoError
// where a file is missing, damaged or not to be had, with what the program said.
FetchedSet fetch(const std::string& name, const std::string& from, const std::string& folder);

}  // namespace samebytes::data
