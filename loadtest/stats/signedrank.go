package stats

import (
	"cmp"
	"math"
	"slices"
)

// SignedRank returns the two-sided p-value of Wilcoxon's signed-rank test that the
// d are symmetric about 0, from the exact distribution (no normal approximation):
// zeros are dropped, equal sizes share their mean rank and the distribution is the
// one given those ranks. 1 where no value is left.
//
// With n values it cannot be below 2^(1-n): five blocks prove nothing at 5 %.
func SignedRank(d []float64) float64 {
	nonzero := slices.DeleteFunc(slices.Clone(d), func(x float64) bool { return x == 0 })
	if len(nonzero) == 0 {
		return 1
	}
	ranks := doubledRanks(nonzero)
	positive, total := 0, 0
	for i, r := range ranks {
		total += r
		if nonzero[i] > 0 {
			positive += r
		}
	}
	below := 0.0 // P(T ≤ min(T+, T−)), T being symmetric about total/2
	for _, p := range rankSums(ranks)[:min(positive, total-positive)+1] {
		below += p
	}
	return min(1, 2*below)
}

// doubledRanks are twice the ranks of |d|, so that mean ranks are whole numbers.
func doubledRanks(d []float64) []int {
	order := make([]int, len(d))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(math.Abs(d[i]), math.Abs(d[j])) })
	ranks := make([]int, len(d))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && math.Abs(d[order[to]]) == math.Abs(d[order[from]]) {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = from + 1 + to // twice the mean of from+1 … to
		}
		from = to
	}
	return ranks
}

// rankSums is the distribution of the sum of those ranks that a fair coin each
// selects: p[s] is the probability of the sum s.
func rankSums(ranks []int) []float64 {
	p := []float64{1}
	for _, r := range ranks {
		next := make([]float64, len(p)+r)
		for s, q := range p {
			next[s] += q / 2
			next[s+r] += q / 2
		}
		p = next
	}
	return p
}

// HodgesLehmann returns the median of all pairwise means (Walsh averages) of d and
// the interval that inverts the exact signed-rank test at the level, 0.95 say.
// Unbounded below 6 values at 95 %, and without any value the zero Interval.
//
// Source: Hollander, Wolfe, Chicken, Nonparametric Statistical Methods, 3rd ed.,
// sections 3.2 and 3.3.
func HodgesLehmann(d []float64, level float64) Interval {
	if len(d) == 0 {
		return Interval{}
	}
	walsh := make([]float64, 0, len(d)*(len(d)+1)/2)
	for i := range d {
		for j := range i + 1 {
			walsh = append(walsh, (d[i]+d[j])/2)
		}
	}
	slices.Sort(walsh)
	center := middle(walsh)
	k := criticalRank(len(d), level)
	if k == 0 {
		return Interval{Center: center, Lo: walsh[0], Hi: walsh[len(walsh)-1]}
	}
	return Interval{Center: center, Lo: walsh[k-1], Hi: walsh[len(walsh)-k], Bounded: true}
}

// criticalRank is the largest k with P(T+ ≤ k−1) ≤ (1−level)/2 for n values
// without ties: the interval runs from the kth smallest Walsh average to the kth
// largest. 0 where no k will do.
func criticalRank(n int, level float64) int {
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = i + 1
	}
	tail, k := 0.0, 0
	for _, p := range rankSums(ranks) {
		if tail += p; tail > (1-level)/2 {
			break
		}
		k++
	}
	return k
}
