"""The stages of exact near-duplicate detection, composed by hand: pages, signatures, pairs, clusters, decisions.

``python examples/stages.py FOLDER`` lists the pages of a folder that would be removed, each with the page that stays.
"""

import sys

from spotsigs import Corpus, IdfFilter, SpotSignatures, SpotSigsTight, cluster
from spotsigs.clustering.decisions import decide
from spotsigs.formats.folder import Folder
from spotsigs.signatures.extract import extract
from spotsigs.signatures.template_removal import TemplateRemoval
from spotsigs.storage.exact_duplicates import ExactDuplicates, Sameness
from spotsigs.text.visible import VisibleText
from spotsigs.workers.engines import Serial


def main(path: str, tau: float = 0.25) -> None:
    """Print a line for each page that another page of the folder replaces."""
    # 1. The text of each page becomes tokens, and the tokens spot signatures, without those of its site's template.
    scheme = TemplateRemoval(signature=SpotSignatures(language="auto"))
    signatures = extract(Folder(path=path), VisibleText(), scheme, Serial(), sameness=Sameness.text)

    # 2. One page stands for all exact duplicates of it; the rows of the others are empty from here on.
    duplicates = ExactDuplicates.among(signatures, Sameness.text)

    # 3. Signatures outside of the band of normalised IDF are dropped, and the others numbered.
    vectors = IdfFilter(idf_min=0.0, idf_max=1.0)(signatures, duplicates)

    # 4. The join finds all pairs with a similarity of at least tau; exact duplicates are pairs of similarity 1.
    pairs = duplicates.spread(SpotSigsTight(tau=tau)(Corpus(vectors)))

    # 5. Every removed page is similar to the page that leads its cluster, and no two leaders are similar.
    decisions = decide(pairs, cluster(pairs, n=len(signatures)), exact_duplicates=duplicates)
    for row in (~decisions.kept).nonzero()[0]:
        kept = signatures.doc_ids[decisions.partner[row]]
        sys.stdout.write(f"{signatures.doc_ids[row]}\t{kept}\t{decisions.similarity[row]:.3f}\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/stages.py FOLDER")
    main(sys.argv[1])
