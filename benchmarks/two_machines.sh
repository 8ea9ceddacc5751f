#!/usr/bin/env bash
# Runs COMMAND in two processes as if they were on two machines, 1 Gbit/s and 5 ms apart: two network namespaces with a
# link between them, a core for each process. Needs root, ip and tc; where the kernel has no netem, a program carries
# the packets (slow_link.py, which needs python3 and takes part of a core).
#   benchmarks/two_machines.sh build/samebytes train gpt --data data/text/tinyshakespeare.txt --steps 50
# SAMEBYTES_MBITS (1000) and SAMEBYTES_DELAY_MS (5, one way) are another link.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
delay=${SAMEBYTES_DELAY_MS:-5} rate=${SAMEBYTES_MBITS:-1000}
work=$(mktemp -d)
link=
cleanup() {
  [ -z "$link" ] || kill "$link" 2>/dev/null || true
  ip netns del sb0 2>/dev/null || true
  ip netns del sb1 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
ip netns add sb0
ip netns add sb1
ip -n sb0 link set lo up
ip -n sb1 link set lo up
if ip netns exec sb0 tc qdisc add dev lo root netem delay 1ms 2>/dev/null; then
  ip netns exec sb0 tc qdisc del dev lo root
  ip link add sbv0 netns sb0 type veth peer name sbv0 netns sb1
  for i in 0 1; do
    ip -n sb$i addr add 10.77.0.$((i + 1))/24 dev sbv0
    ip -n sb$i link set sbv0 up
    ip netns exec sb$i tc qdisc add dev sbv0 root netem delay "${delay}ms" rate "${rate}mbit"
  done
  how=netem
else
  python3 "$here/slow_link.py" --namespaces sb0 sb1 --addresses 10.77.0.1/24 10.77.0.2/24 \
    --rate "${rate}e6" --delay "${delay}e-3" >"$work/link" &
  link=$!
  for _ in $(seq 100); do
    grep -q ready "$work/link" && break
    kill -0 "$link" # it ended with an error
    sleep 0.1
  done
  how="slow_link.py (this kernel has no netem)"
fi
echo "two machines: $rate Mbit/s and $delay ms between them, by $how" >&2
# Instead of ssh: the host's name is its namespace. Each has a core of its own where there are two.
own_core() { [ "$(nproc)" -lt 2 ] || echo "taskset -c $1"; }
cat >"$work/agent" <<AGENT
#!/usr/bin/env bash
host=\$1
shift
exec ip netns exec "sb\$((\${host##*.} - 1))" unshare --uts bash -c "hostname \$host; $(own_core 1) \$*"
AGENT
chmod +x "$work/agent"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# A bucket goes out at once, instead of after a question and its answer.
export OMPI_MCA_btl_tcp_eager_limit=${OMPI_MCA_btl_tcp_eager_limit:-1048576}
export OMPI_MCA_btl_tcp_max_send_size=${OMPI_MCA_btl_tcp_max_send_size:-1048576}
ip netns exec sb0 unshare --uts bash -c 'hostname 10.77.0.1; exec "$@"' bash $(own_core 0) \
  mpirun --bind-to none --mca plm_rsh_agent "$work/agent" --mca btl tcp,self --mca btl_tcp_if_include sbv0 \
  --mca oob_tcp_if_include sbv0 --host 10.77.0.1:1,10.77.0.2:1 -n 2 "$@"
