package disclosure

import (
	"fmt"
	"strings"
)

// words are the words of a page in one language. Those with a % are formats.
type words struct {
	Language string

	Odds, Of, Version, Hash, Intro, IntroWithin            string
	Price, Free, Or                                        string
	Entry, First, Exactly, Times, LongRun, DrawOf, InDraws string
	NotComputed, NoLongRun, NoRequest                      string
	Code, From, Nothing                                    string
	Track, Rising, RisingBy, Certain, Unless, Stop, Within string
	Moments, Budgets, Days                                 string
	Rules, Other                                           string
}

// fill writes a format.
func fill(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// wordsIn returns the words in a language, or in English.
func wordsIn(language string) *words {
	base, _, _ := strings.Cut(strings.ToLower(language), "-")
	for i := range inLanguages {
		if inLanguages[i].Language == base {
			return &inLanguages[i]
		}
	}
	return &inLanguages[0]
}

var inLanguages = [...]words{{
	Language: "en",
	Odds:     "Odds", Of: "Odds – %s",
	Version: "Catalog version %d of realm %s", Hash: "SHA-256",
	Intro: "The odds are exact, through all pools that a pool leads to. First draw: of a player who has never drawn, with the stock as declared. " +
		"Long run: how many times a draw takes the entry on average, when a player draws again and again, in requests for one, while stock, codes and budgets last; pity raises it.",
	IntroWithin: " In 10: how many times a first request for ten draws takes the entry on average, where something is guaranteed within it; a draw of 10: a tenth of that.",
	Price:       "A draw costs %s.", Free: "nothing", Or: " or ",
	Entry: "You get", First: "First draw", Exactly: "Exactly", Times: "Times in it", LongRun: "Long run", DrawOf: "A draw of %d", InDraws: "In %d",
	NotComputed: "The odds are not computed: %s", NoLongRun: "Long run: %s.", NoRequest: "Not computed: requests for %d draws: %v.",
	Code: "a code of %s", From: "a draw from %s", Nothing: "nothing (%s)",
	Track: "%s: a draw that takes %s is counted as a hit", Rising: "; from draw %d after the last hit on, the chance rises", RisingBy: " by %s percentage points a draw",
	Certain: "; draw %d after the last hit is certain to hit, if it is in stock", Unless: ", unless %s comes: then the next draw is", Stop: ".",
	Within:  "Of each %d draws in one request, at least %d takes %s, if it is in stock.",
	Moments: "%s, %s: the first draw after each of %d moments takes it, whatever the odds. They lie between %s and %s: %s, in the time zone %s. The odds are those between moments.",
	Budgets: "%s: all players together are given no more than this: %s, in the time zone %s. An entry that could give more than is left is out of stock. The odds are those before.",
	Days:    ", where days begin at %s and weeks on %v",
	Rules:   "Rules that change the odds", Other: "Others",
}, {
	Language: "de",
	Odds:     "Chancen", Of: "Chancen – %s",
	Version: "Katalogversion %d des Realms %s", Hash: "SHA-256",
	Intro: "Die Chancen sind exakt, durch alle Pools, zu denen ein Pool führt. Erste Ziehung: für jemanden, der noch nie gezogen hat, mit dem angegebenen Vorrat. " +
		"Auf Dauer: wie oft eine Ziehung den Eintrag im Mittel bringt, wenn man immer wieder einzeln zieht, solange Vorrat, Codes und Budgets reichen; Pity erhöht das.",
	IntroWithin: " In 10: wie oft eine erste Anfrage mit zehn Ziehungen den Eintrag im Mittel bringt, wo darin etwas garantiert ist; eine Ziehung von 10: ein Zehntel davon.",
	Price:       "Eine Ziehung kostet %s.", Free: "nichts", Or: " oder ",
	Entry: "Du erhältst", First: "Erste Ziehung", Exactly: "Genau", Times: "Wie oft darin", LongRun: "Auf Dauer", DrawOf: "Eine Ziehung von %d", InDraws: "In %d",
	NotComputed: "Die Chancen sind nicht berechnet: %s", NoLongRun: "Auf Dauer: %s.", NoRequest: "Nicht berechnet: Anfragen mit %d Ziehungen: %v.",
	Code: "ein Code aus %s", From: "eine Ziehung aus %s", Nothing: "nichts (%s)",
	Track: "%s: Eine Ziehung, die %s bringt, zählt als Treffer", Rising: "; ab der %d. Ziehung nach dem letzten Treffer steigt die Chance", RisingBy: " um %s Prozentpunkte je Ziehung",
	Certain: "; die %d. Ziehung nach dem letzten Treffer trifft sicher, solange der Vorrat reicht", Unless: ", außer es kommt %s: dann die nächste", Stop: ".",
	Within:  "Von je %d Ziehungen einer Anfrage bringen mindestens %d: %s, solange der Vorrat reicht.",
	Moments: "%s, %s: Die erste Ziehung nach jedem von %d Momenten bringt es, unabhängig von der Chance. Sie liegen zwischen %s und %s: %s, in der Zeitzone %s. Die Chancen gelten zwischen den Momenten.",
	Budgets: "%s: Alle Spielerinnen und Spieler zusammen erhalten nicht mehr als: %s, in der Zeitzone %s. Ein Eintrag, der mehr geben könnte, als übrig ist, ist nicht vorrätig. Die Chancen gelten davor.",
	Days:    ", wo Tage um %s beginnen und Wochen am Tag %v",
	Rules:   "Regeln, die die Chancen ändern", Other: "Weitere",
}, {
	Language: "ja",
	Odds:     "提供割合", Of: "提供割合 – %s",
	Version: "レルム %[2]s のカタログ第 %[1]d 版", Hash: "SHA-256",
	Intro: "確率は、つながる抽選プールまで含めて正確に計算しています。初回：一度も引いていないプレイヤーが、表示どおりの在庫で引く場合。" +
		"長期：在庫・コード・予算があるかぎり 1 回ずつ引き続けたときに、1 回あたり平均で出る回数（天井を含む）。",
	IntroWithin: "10 回中：保証のある初回の 10 連で平均何回出るか。10 連の 1 回：その 10 分の 1。",
	Price:       "1 回の価格：%s", Free: "無料", Or: " または ",
	Entry: "内容", First: "初回", Exactly: "正確な値", Times: "1 回中の回数", LongRun: "長期", DrawOf: "%d 連の 1 回", InDraws: "%d 回中",
	NotComputed: "確率は計算されていません：%s", NoLongRun: "長期：%s", NoRequest: "計算されていません：%d 回まとめて引く場合：%v",
	Code: "%s のコード", From: "%s から抽選", Nothing: "なし（%s）",
	Track: "%s：%s が出ると当たりとして数えます", Rising: "。前回の当たりから %d 回目以降、確率が上がります", RisingBy: "（1 回ごとに %s ポイント）",
	Certain: "。在庫があれば、前回の当たりから %d 回目は必ず当たります", Unless: "（%s が出た場合は次の回）", Stop: "。",
	Within:  "まとめて %d 回引くごとに、在庫があれば少なくとも %d 回は次が出ます：%s",
	Moments: "%s、%s：%d 個の時点のそれぞれの後、最初に引いた人に、確率にかかわらず当たります。期間：%s から %s まで。%s、タイムゾーン %s。確率は時点と時点の間のものです。",
	Budgets: "%s：全プレイヤー合計の上限：%s、タイムゾーン %s。残りを超えうるものは在庫切れになります。確率はその前のものです。",
	Days:    "（1 日は %s、週は %v に始まります）",
	Rules:   "確率が変わるルール", Other: "その他",
}}
