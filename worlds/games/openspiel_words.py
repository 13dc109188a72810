"""OpenSpiel games in plain words: six of them in English that a very small model can follow, the others as they are.

Everything said of a position is read from what OpenSpiel says that this player knows, so no words can tell more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sim.types import JSON

CARDS = ("jack", "queen", "king", "ace")
"""Cards of the small poker games, from low to high."""
FACES = ("one", "two", "three", "four", "five", "six")
COLUMNS = "abc"


class Wording:
    """Any game, in OpenSpiel's own words."""

    def __init__(self, title: str, settings: Mapping[str, JSON], players: int) -> None:
        self.title = title
        """The game's name for people."""
        self.settings = settings
        """OpenSpiel's parameters of the game."""
        self.players = players

    def rules(self) -> str:
        """The rules, the same for every player."""
        return f"You play {self.title} with {self._others()}. You want as many points as you can get."

    def label(self, text: str) -> str:
        """A move in our words, from OpenSpiel's own."""
        return " ".join(text.split())

    def tell(self, view: Mapping[str, JSON]) -> str:
        """The position as the player knows it, and the question."""
        return f"You are player {view['me'] + 1} of {self.players}.\n{view['board'].strip()}\nWhat is your move?"

    def showdown(self, known: Sequence[str]) -> dict[int, str]:
        """What is laid open to all at the end, by player, from what each knows then."""
        return {}

    def text(self, view: Mapping[str, JSON]) -> str:
        """The view in full: which game, what is new, the position, the question."""
        count = [f"Game {view['hand']} of {view['hands']}."] if view["hands"] > 1 else []
        return "\n".join([*count, *view["news"], self.tell(view)])

    def _others(self) -> str:
        if self.players == 2:
            return "one other player"
        return f"{self.players - 1} other players" if self.players > 1 else "nobody else"

    def _did(self, view: Mapping[str, JSON], moves: Iterable[tuple[int, str]]) -> str:
        """Who did what, in order."""
        return ", then ".join(f"{who(view, player)} {verb}" for player, verb in moves)


def who(view: Mapping[str, JSON], player: int) -> str:
    """A player as the reader would call it."""
    if player == view["me"]:
        return "you"
    return "the other player" if len(view["players"]) == 2 else str(view["players"][player])


def sentence(text: str) -> str:
    """With a full stop, and a capital where it does not begin with somebody's name."""
    return f"{text[0].upper()}{text[1:]}." if text.startswith(("you ", "the other ")) else f"{text}."


def count(number: int, noun: str) -> str:
    """`1 coin`, `2 coins`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def result(got: float) -> str:
    """What a finished game brought to the reader."""
    return f"Last game you {'won' if got > 0 else 'lost' if got < 0 else 'got'} {short(abs(got))}."


def short(value: float) -> str:
    """A number without needless zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def card(rank: int) -> str:
    """A poker card by its rank from 0."""
    return CARDS[rank] if rank < len(CARDS) else f"card {rank + 1}"


def listed(items: Iterable[object], last: str = "and") -> str:
    """`a, b and c`."""
    *most, end = map(str, items)
    return f"{', '.join(most)} {last} {end}" if most else end


class Kuhn(Wording):
    """Kuhn poker. What a player knows: its card, then p and b for every pass and bet, such as `2pb`."""

    def rules(self) -> str:
        """The rules."""
        cards = listed(card(rank) for rank in range(self.players + 1))
        return (
            f"You play poker for coins with {self._others()}. The cards are {cards}, from low to high. Everybody has "
            "one card, which nobody else sees, and has put 1 coin in the pot.\n"
            "In turn each says pass or bet. To bet is to put 1 more coin in the pot. After a bet, whoever passes gives "
            "up, and whoever bets stays in. Of those who stay in, the highest card wins the pot. If nobody bets, the "
            "highest card of all wins it.\n"
            "You want to win as many coins as you can."
        )

    def label(self, text: str) -> str:
        """`pass`, `bet`, or a card that is dealt."""
        return card(int(text[5:])) if text.startswith("Deal:") else text.lower()

    def tell(self, view: Mapping[str, JSON]) -> str:
        """The card, what was said so far, what it costs."""
        rank, said = self._read(view["known"])
        verbs = {"p": "passed", "b": "bet"}
        moves = self._did(view, ((n % self.players, verbs[one]) for n, one in enumerate(said)))
        cost = "pass and give up 1 coin, or bet 1 more coin and stay in" if "b" in said else "pass, or bet 1 coin"
        told = sentence(moves) if moves else "You are the first to speak."
        return f"Your card is the {card(rank)}. {told}\nYou can {cost}."

    def showdown(self, known: Sequence[str]) -> dict[int, str]:
        """The cards of those who stayed in, if there are several."""
        said = self._read(known[0])[1]
        stayed = {n % self.players for n, one in enumerate(said) if one == "b"} or set(range(self.players))
        return {p: f"the {card(self._read(known[p])[0])}" for p in sorted(stayed)} if len(stayed) > 1 else {}

    @staticmethod
    def _read(known: str) -> tuple[int, str]:
        said = known.lstrip("0123456789")
        return int(known[: len(known) - len(said)]), said


class Leduc(Wording):
    """Leduc poker. What a player knows: `[Private: 3][Money: 99 97][Public: 4][Round1: 1 2][Round2: ]` and the like."""

    def rules(self) -> str:
        """The rules."""
        cards = listed(f"two {card(rank)}s" for rank in range(self.players + 1))
        return (
            f"You play poker for coins with {self._others()}. There are {cards}, from low to high. Everybody has one "
            "card, which nobody else sees, and has put 1 coin in the pot. There are two rounds. After the first one a "
            "card is laid open for all.\n"
            "You can call (put in as much as the others), raise (call, and 2 coins more in the first round, 4 in the "
            "second; at most two raises a round) or fold (give up). At the end a card equal to the open card wins, "
            "otherwise the higher card. Equal cards share the pot.\n"
            "You want to win as many coins as you can."
        )

    def label(self, text: str) -> str:
        """`fold`, `call`, `raise`, or a card that is dealt."""
        return self._card(text.rpartition(":")[2]) if ":" in text else text.lower()

    def tell(self, view: Mapping[str, JSON]) -> str:
        """The cards, what was done so far, what it costs."""
        known = self._read(view["known"])
        opened = f"The open card is the {self._card(known['Public'])}." if "Public" in known else "No card is open yet."
        rounds = zip(("First", "Second"), self._rounds(known), strict=True)
        told = [f"{name} round: {self._did(view, moves)}." for name, moves in rounds if moves]
        left = [int(coins) for coins in known["Money"].split()]
        cost = left[view["me"]] - min(left)
        price = f"To call costs {count(cost, 'coin') if cost else 'nothing'}."
        return "\n".join(
            [
                f"Your card is the {self._card(known['Private'])}. {opened}",
                *told,
                f"There are {known['Pot']} coins in the pot. {price} Do you {listed(view['options'], 'or')}?",
            ]
        )

    def showdown(self, known: Sequence[str]) -> dict[int, str]:
        """The cards of those who did not fold, if there are several."""
        folded = {p for moves in self._rounds(self._read(known[0])) for p, verb in moves if verb == "folded"}
        stayed = [player for player in range(self.players) if player not in folded]
        return {p: f"the {self._card(self._read(known[p])['Private'])}" for p in stayed} if len(stayed) > 1 else {}

    def _card(self, number: str) -> str:
        return card(int(number) if self.settings["suit_isomorphism"] else int(number) // 2)

    @staticmethod
    def _read(known: str) -> dict[str, str]:
        return dict(re.findall(r"\[(\w+): ([^\]]*)\]", known))

    def _rounds(self, known: Mapping[str, str]) -> list[list[tuple[int, str]]]:
        """Who did what in each round: from the starting player on in turn, without those who have folded."""
        verbs = ("folded", "called", "raised")
        folded: set[int] = set()
        rounds = []
        for key in ("Round1", "Round2"):
            player, moves = self.settings["starting_player"], []
            for move in map(int, known[key].split()):
                while player % self.players in folded:
                    player += 1
                moves.append((player % self.players, verbs[move]))
                if move == 0:
                    folded.add(player % self.players)
                player += 1
            rounds.append(moves)
        return rounds


class LiarsDice(Wording):
    """Liar's dice. What a player knows: its dice and all bids, such as `13 1-6 3-4`."""

    def rules(self) -> str:
        """The rules."""
        dice, sides = self.settings["numdice"], self.settings["dice_sides"]
        higher = "more dice, or as many dice and a higher face"
        if self.settings["bidding_rule"] == "reset-quantity":
            higher = "a higher face, or the same face and more dice"
        return (
            f"You play dice with {self._others()}. Everybody has {'one die' if dice == 1 else f'{dice} dice'} with "
            f"{sides} sides, which nobody else sees.\n"
            "In turn each makes a bid: at least how many of all the dice show a face. "
            f"{_face(sides, 1).capitalize()} counts as any face. The next bid must be higher: {higher}. Or you "
            "challenge the last bid. Then all dice are shown: if the bid was right, its bidder wins, if not, the "
            "challenger wins."
        )

    def label(self, text: str) -> str:
        """`challenge`, a bid such as `2 fives`, or a roll."""
        if text == "Liar":
            return "challenge"
        number, _, face = text.rpartition("-")
        return f"{number} {_face(int(face), int(number))}" if number else text.lower()

    def tell(self, view: Mapping[str, JSON]) -> str:
        """The dice and the bids."""
        dice, *bids = view["known"].split()
        shown = f"Your die shows {dice}." if len(dice) == 1 else f"Your dice show {listed(dice)}."
        if not bids:
            return f"{shown} You make the first bid.\nWhat do you bid?"
        moves = self._did(view, ((n % self.players, f"bid {self.label(bid)}") for n, bid in enumerate(bids)))
        higher = ", or make a higher bid?" if len(view["options"]) > 1 else "? No bid is higher."
        return f"{shown} {sentence(moves)}\nDo you challenge the last bid{higher}"

    def showdown(self, known: Sequence[str]) -> dict[int, str]:
        """All dice."""
        return {player: listed(each.split()[0]) for player, each in enumerate(known)}


def _face(face: int, number: int) -> str:
    """`five`, `fives`; above six the figure."""
    word = FACES[face - 1] if face <= len(FACES) else str(face)
    return word if number == 1 else f"{word}{'es' if word.endswith('x') else 's'}"


class TicTacToe(Wording):
    """Tic-tac-toe. What a player knows: the cells marked so far, from 0 to 8, such as `2, 1, 4`."""

    def rules(self) -> str:
        """The rules."""
        return (
            "Two players, x and o, in turn mark an empty cell of a board of 3 rows and 3 columns; x begins. Who has "
            "three in a row, a column or a diagonal wins. Columns are a, b and c, rows are 1, 2 and 3."
        )

    def label(self, text: str) -> str:
        """A cell, such as `a1`: x(0,1) is b1."""
        row, column = map(int, re.findall(r"\d", text))
        return f"{COLUMNS[column]}{row + 1}"

    def tell(self, view: Mapping[str, JSON]) -> str:
        """The board."""
        cells = ["."] * 9
        for n, cell in enumerate(map(int, re.findall(r"\d", view["known"]))):
            cells[cell] = "xo"[n % 2]
        rows = [f"{row + 1} {' '.join(cells[3 * row : 3 * row + 3])}" for row in range(3)]
        return "\n".join([f"You are {'xo'[view['me']]}.", f"  {' '.join(COLUMNS)}", *rows, "Which cell do you mark?"])


class Goofspiel(Wording):
    """Goofspiel. What a player knows is told in lines such as `Point card sequence: 4 1`."""

    def rules(self) -> str:
        """The rules."""
        hidden = " The bids stay hidden." if self.settings["imp_info"] else ""
        return (
            f"You play cards with {self._others()}. Everybody has the cards 1 to {self.settings['num_cards']}. In each "
            "round one prize is shown, and all bid one of their cards for it at the same time. The highest bid takes "
            f"the points of the prize. If the highest bids are equal, nobody does.{hidden} A card can be bid once "
            "only. You want to have the most points at the end."
        )

    def label(self, text: str) -> str:
        """The number on the card."""
        return f"prize {text[5:]}" if text.startswith("Deal ") else text.rpartition(" ")[2]

    def tell(self, view: Mapping[str, JSON]) -> str:
        """The prize, who took which, the cards left."""
        known = dict(line.split(":", 1) for line in view["known"].splitlines())
        *before, prize = known["Point card sequence"].split()
        takers = [int(player) for player in known["Win sequence"].split()]
        won = [f"{one} to {who(view, p) if p >= 0 else 'nobody'}" for one, p in zip(before, takers, strict=True)]
        lines = [f"The prize is worth {count(int(prize), 'point')}. Your cards are {listed(view['options'])}."]
        if not self.settings["imp_info"]:
            lines += self._cards_of_others(view, known)
        if won:
            points = listed(f"{who(view, player)} {each}" for player, each in enumerate(known["Points"].split()))
            lines.append(f"Prizes so far: {', '.join(won)}. Points: {points}.")
        return "\n".join([*lines, "Which card do you bid?"])

    def _cards_of_others(self, view: Mapping[str, JSON], known: Mapping[str, str]) -> Iterator[str]:
        for player in range(self.players):
            if player != view["me"] and (hand := known[f"P{player} hand"].split()):
                yield sentence(f"{who(view, player)} has {listed(hand)}")


class SealedBid(Wording):
    """First-price sealed-bid auction. What a player knows before its bid: `p0 val 3`."""

    def rules(self) -> str:
        """The rules."""
        return (
            f"You and {self._others()} bid for one thing. Each knows only what it is worth to itself, a whole number "
            f"from 1 to {self.settings['max_value']}, and makes one bid that nobody else sees. The highest bid wins; "
            "among equal ones the lot decides. The winner pays its bid and gets the thing: it gains what the thing is "
            "worth to it, less the bid. The others gain nothing."
        )

    def label(self, text: str) -> str:
        """The bid as a number, the value that chance deals, the seat that wins."""
        if " value: " in text:
            return f"value {text.rpartition(' ')[2]}"
        return text.rpartition(": ")[2] if " bid: " in text else f"won by seat {int(text.split()[-1]) + 1}"

    def tell(self, view: Mapping[str, JSON]) -> str:
        """The value."""
        return f"The thing is worth {view['known'].split()[2]} to you.\nWhat do you bid?"


NAMED: Mapping[str, type[Wording]] = {
    "kuhn_poker": Kuhn,
    "leduc_poker": Leduc,
    "liars_dice": LiarsDice,
    "tic_tac_toe": TicTacToe,
    "goofspiel": Goofspiel,
    "first_sealed_auction": SealedBid,
}
"""Games with words of their own, by OpenSpiel's name."""
