// Ctrl-C: the first SIGINT or SIGTERM asks the run to end after the step under way, the second one ends the program at
// once. A SIGTERM that nobody has seen for 30 s, because the run hangs in a driver, ends it too.
#pragma once

namespace samebytes::cli {

// From here on the two signals only set the flag that is_interrupted() reads.
void watch_interrupts();
bool is_interrupted();
bool is_terminated();  // by SIGTERM

}  // namespace samebytes::cli
