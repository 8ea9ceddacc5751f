#!/usr/bin/env bash
# Runs COMMAND in two processes as if they were on two machines, 1 Gbit/s and 5 ms apart: two network namespaces with a
# link between them. Needs root, ip and tc; a kernel without netem has the rate alone, and the script says so.
#   benchmarks/two_machines.sh build/samebytes train gpt --data data/text/tinyshakespeare.txt --steps 50
# SAMEBYTES_RATE and SAMEBYTES_DELAY are in the words of tc; a delay of 0 leaves it out.
set -euo pipefail
delay=${SAMEBYTES_DELAY:-5ms} rate=${SAMEBYTES_RATE:-1gbit}
work=$(mktemp -d)
cleanup() {
  ip netns del sb0 2>/dev/null || true
  ip netns del sb1 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
ip netns add sb0
ip netns add sb1
ip link add sbv0 netns sb0 type veth peer name sbv0 netns sb1
for i in 0 1; do
  ip netns exec sb$i ip link set lo up
  ip netns exec sb$i ip addr add 10.77.0.$((i + 1))/24 dev sbv0
  ip netns exec sb$i ip link set sbv0 up
  if [ "$delay" = 0 ] || ! ip netns exec sb$i tc qdisc add dev sbv0 root netem delay "$delay" rate "$rate" 2>/dev/null; then
    [ "$delay" = 0 ] || [ "$i" = 1 ] || echo "no netem in this kernel: the rate alone, without a delay" >&2
    ip netns exec sb$i tc qdisc add dev sbv0 root tbf rate "$rate" burst 128kb latency 20ms
  fi
done
# Instead of ssh: the host's name is its namespace.
cat >"$work/agent" <<'AGENT'
#!/usr/bin/env bash
host=$1
shift
exec ip netns exec "sb$((${host##*.} - 1))" unshare --uts bash -c "hostname $host; $*"
AGENT
chmod +x "$work/agent"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ip netns exec sb0 unshare --uts bash -c 'hostname 10.77.0.1; exec "$@"' bash \
  mpirun --mca plm_rsh_agent "$work/agent" --mca btl tcp,self --mca btl_tcp_if_include sbv0 \
  --mca oob_tcp_if_include sbv0 --host 10.77.0.1:1,10.77.0.2:1 -n 2 "$@"
