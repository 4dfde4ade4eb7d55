"""Stop words, too common to characterize a text: English, German, French and Spanish, Russian and related languages, Greek."""

# ruff: noqa: RUF001 - letters of Greek and Cyrillic look like others

_LATIN = (
    "about above after again all also although always and any are because been before being below between both but can "
    "cannot could did does doing done down during each either else even every few for from further get gets given got had "
    "has have having her here him his how however into its itself just less like made make makes many may might more most "
    "much must neither next nor not now off often once one ones only other others our out over own per please rather same "
    "see several shall she should since some such than that the their them then there therefore these they this those "
    "though three through thus too two under until upon use used uses using very via was way well were what when where "
    "whether which while who whose why will with within without would yet you your file files http https www org com html "
    "true false none null new set example der die das und ist nicht von den dem ein eine mit auf für sich des les une est "
    "que pour dans par sur los las del por "
)
_CYRILLIC = (
    "для что это как если или чтобы того этот эта эти тот той так также при под над без его она они оно был была было были "
    "быть есть все всё всех вас вам ваш ваши который которая которое которые которых только уже ещё может можно нужно будет "
    "будут когда где там здесь между после перед через один два три раз чем ним них нет этого этой этом этих том тем тех "
    "себя свой своей потом теперь затем сте това този тази тези както ако още вече може много само след през към със във "
    "съм сме бъде бил била която който което които има няма като щоб цей цього який яка які або коли буде після від ця про "
    "вже тільки можна "
)
_GREEK = (
    "για και είναι τον την της του των τις τους στο στη στην στον στα στις στους από που πως ότι όταν όπου όπως αυτό αυτή "
    "αυτός αυτά αυτές αυτού ένα ένας μία μια μιας ενός δεν μην θα να με σας μας μου σου ήταν έχει έχετε έχουν έχουμε μπορεί "
    "μπορείτε πρέπει κάθε όλα όλες όλοι πριν μετά πάνω κάτω αλλά επίσης μόνο ήδη εδώ εκεί μέσα έτσι ώστε αν εάν προς χωρίς "
    "κατά μεταξύ "
)
STOP = frozenset((_LATIN + _CYRILLIC + _GREEK).split())
