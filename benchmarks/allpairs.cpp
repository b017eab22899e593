// AllPairs (Bayardo, Ma, Srikant 2007) and PPJoin (Xiao et al. 2008) for sorted sets, one thread: a C++ yardstick
// written here. It follows the plain design that Mann, Augsten and Bouros (PVLDB 2016) found hard to beat: prefix
// filter with an inverted index built on the way, length filter by the lists' order, candidates in an array of
// counts, verification by a merge that starts behind the prefixes and stops when the overlap is out of reach.
//
// Sets are given in CSR form, tokens ascending by global frequency rank, sets ascending by length. `least[s]` is the
// least overlap of two sets with together s tokens, so that the decision is the caller's own float64 test.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

struct Posting {
    int32_t set;
    int32_t position;
};

struct List {
    std::vector<Posting> postings;
    size_t begin = 0;  // earlier ones are too short for every set to come
};

struct Sets {
    const int64_t* indptr;
    const int32_t* tokens;
    int32_t size(int64_t set) const { return static_cast<int32_t>(indptr[set + 1] - indptr[set]); }
    const int32_t* at(int64_t set) const { return tokens + indptr[set]; }
};

int32_t overlap_from(const int32_t* x, const int32_t* x_end, const int32_t* y, const int32_t* y_end, int32_t overlap,
                     int32_t needed) {
    while (x < x_end && y < y_end) {
        if (overlap + std::min(x_end - x, y_end - y) < needed) return -1;
        if (*x == *y) {
            ++overlap, ++x, ++y;
        } else if (*x < *y) {
            ++x;
        } else {
            ++y;
        }
    }
    return overlap;
}

}  // namespace

// Returns the number of pairs, of which the first `room` are written to `out_x`, `out_y`.
extern "C" int64_t join(const int64_t* indptr, const int32_t* tokens, int64_t n, int32_t n_tokens,
                        const int32_t* least, double tau, int32_t positional, int32_t* out_x, int32_t* out_y,
                        int64_t room) {
    const Sets sets{indptr, tokens};
    std::vector<List> lists(n_tokens);
    std::vector<int32_t> counts(n, 0), candidates;
    int64_t found = 0;
    for (int64_t x = 0; x < n; ++x) {
        const int32_t size = sets.size(x);
        if (size == 0) continue;
        int32_t shortest = static_cast<int32_t>(size * tau) > 1 ? static_cast<int32_t>(size * tau) - 1 : 1;
        while (static_cast<double>(shortest) / size < tau) ++shortest;
        const int32_t probed = size - least[size + shortest] + 1, indexed = size - least[2 * size] + 1;
        candidates.clear();
        for (int32_t i = 0; i < probed; ++i) {
            List& list = lists[sets.at(x)[i]];
            while (list.begin < list.postings.size() && sets.size(list.postings[list.begin].set) < shortest) {
                ++list.begin;
            }
            for (size_t p = list.begin; p < list.postings.size(); ++p) {
                const Posting posting = list.postings[p];
                int32_t& count = counts[posting.set];
                if (positional && count == 0) {  // a set pruned here is pruned again at every later meeting
                    const int32_t other = sets.size(posting.set);
                    if (std::min(size - i, other - posting.position) < least[size + other]) continue;
                }
                if (count++ == 0) candidates.push_back(posting.set);
            }
        }
        for (const int32_t y : candidates) {
            const int32_t other = sets.size(y), needed = least[size + other], met = counts[y];
            counts[y] = 0;
            // the set whose prefix ends earlier in the order has been seen up to there
            const int32_t y_prefix = std::min(other, other - least[2 * other] + 1);
            const int32_t* a = sets.at(x);
            const int32_t* b = sets.at(y);
            const bool x_first = a[probed - 1] < b[y_prefix - 1];
            const int32_t* a_from = x_first ? a + probed : a + met;
            const int32_t* b_from = x_first ? b + met : b + y_prefix;
            if (overlap_from(a_from, a + size, b_from, b + other, met, needed) >= needed) {
                if (found < room) out_x[found] = static_cast<int32_t>(x), out_y[found] = y;
                ++found;
            }
        }
        for (int32_t i = 0; i < indexed; ++i) {
            lists[sets.at(x)[i]].postings.push_back({static_cast<int32_t>(x), i});
        }
    }
    return found;
}
