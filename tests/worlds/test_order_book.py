from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from worlds.markets.order_book import Order, OrderBook, rank


def bid(n: int, trader: str, price: int) -> Order:
    return Order(id=n, trader=trader, side="bid", price=price)


def ask(n: int, trader: str, price: int) -> Order:
    return Order(id=n, trader=trader, side="ask", price=price)


def test_the_better_price_comes_first_then_the_earlier_order() -> None:
    book = OrderBook()
    for order in (bid(0, "a", 50), bid(1, "b", 60), bid(2, "c", 60), ask(3, "d", 90), ask(4, "e", 80), ask(5, "f", 80)):
        book.rest(order)
    assert [order.trader for order in book] == ["b", "c", "a", "e", "f", "d"]
    assert book.best("bid") == bid(1, "b", 60)
    assert book.best("ask") == ask(4, "e", 80)


def test_a_new_order_matches_the_best_opposite_one_at_an_equal_or_better_price() -> None:
    book = OrderBook()
    book.rest(ask(0, "s", 80))
    assert book.match("bid", 79) is None
    assert book.match("bid", 80) == book.match("bid", 99) == ask(0, "s", 80)
    assert book.match("ask", 10) is None
    book.rest(bid(1, "b", 70))
    assert book.match("ask", 71) is None
    assert book.match("ask", 70) == bid(1, "b", 70)


def test_withdrawing_and_clearing() -> None:
    book = OrderBook()
    assert book.withdraw("a") is None
    book.rest(bid(0, "a", 50))
    book.rest(bid(1, "b", 50))
    assert book.withdraw("a") == bid(0, "a", 50)
    assert book.of("a") is None
    assert book.best("bid") == bid(1, "b", 50)
    book.clear()
    assert list(book) == []
    assert book.of("b") is None
    assert book.best("ask") is None


moves = st.tuples(st.sampled_from("abcdef"), st.sampled_from(["bid", "ask", "out"]), st.integers(0, 12))


@settings(max_examples=50, deadline=None)
@given(st.lists(moves, max_size=60))
def test_agrees_with_a_plain_list_that_is_sorted_each_time(steps: list[tuple[str, str, int]]) -> None:
    book, plain = OrderBook(), list[Order]()
    for n, (trader, what, price) in enumerate(steps):
        assert book.withdraw(trader) == next((order for order in plain if order.trader == trader), None)
        plain = [order for order in plain if order.trader != trader]
        if what == "out":
            continue
        order = bid(n, trader, price) if what == "bid" else ask(n, trader, price)
        facing = [o for o in plain if o.side != order.side and (o.price - price) * (1 if what == "bid" else -1) <= 0]
        found = book.match(order.side, price)
        assert found == min(facing, key=rank, default=None)
        if found is None:
            book.rest(order)
            plain.append(order)
        else:
            book.withdraw(found.trader)
            plain.remove(found)
        for side in ("bid", "ask"):
            ranked = sorted((o for o in plain if o.side == side), key=rank)
            assert [o for o in book if o.side == side] == ranked
        top, bottom = book.best("bid"), book.best("ask")
        assert top is None or bottom is None or top.price < bottom.price
