#!/usr/bin/env bash
# Judge the papers' claims, the most per hour first, and keep what is judged (docs/gpu.md).
#
#   config/claims/run.sh [MINUTES]    stops after as many minutes (default: 10); run it again to go on
#
# DATA_DIR is the folder with archives (default: data). config.yaml is set aside while it runs.
set -euo pipefail
cd "$(dirname "$0")/../.."
minutes=${1:-10}
[[ $minutes =~ ^[1-9][0-9]{0,4}$ ]] || { echo "error: MINUTES: a whole number from 1 to 99999, got '$minutes'." >&2; exit 1; }
end=$((SECONDS + 60 * minutes))
aside=config.yaml.aside
[ -e "$aside" ] || cp config.yaml "$aside" # after a kill it is still the user's
trap 'mv "$aside" config.yaml' EXIT
failed=()
while read -r paper run targets; do
  name=$paper-$run
  [ ! -e "docs/measurements/$paper/$run" ] || continue # kept already; remove the folder to make it again
  ((SECONDS < end)) || { echo "$name and what follows are left; run this again to go on."; exit 0; }
  cp "config/claims/$name.yaml" config.yaml
  echo "== $name: $targets"
  variables=(TARGETS="$(printf "${paper}_%s " $targets)" ${DATA_DIR:+DATA_DIR="$DATA_DIR"})
  status=0
  timeout --signal=INT --kill-after=60 "$((end - SECONDS))" make reproduce "${variables[@]}" </dev/null || status=$?
  ((status == 0 || SECONDS < end)) || { echo "$name is not finished; run this again to go on."; exit 0; }
  # The others are made even if one fails, as where there is no archive.
  if ((status == 0)); then make keep RUN="$run" "${variables[@]}"; else failed+=("$name"); fi
done <<'END'
fats several-requests verdicts fig3
safari mnist-seven-seeds verdicts table1 fig2 fig5
safari mnist-corollary-rate verdicts q
fedosd mnist-claims verdicts projection mnist_curves table3 table5
safari cifar10-reduced verdicts table2 fig3 fig4
safari cifar10-thirteen-seeds verdicts fig3
fats mnist-fifteen-seeds verdicts fig5 cost
tradeoffs fig4-six-seeds verdicts fig4
tradeoffs fig5-five-seeds verdicts fig5
tradeoffs bounds verdicts bounds
fedosd table8-pat50-twenty-seeds verdicts table8
fedosd table8-pat20-twenty-seeds verdicts table8
tradeoffs groups verdicts table2 section7_3
END
make docs
((${#failed[@]} == 0)) || { echo "error: failed: ${failed[*]}; the messages are above. All others are in docs/results.md." >&2; exit 1; }
echo "All runs are kept; docs/results.md shows them."
