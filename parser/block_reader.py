"""A parsed SELECT to `blocks`: what its names mean, which columns its conditions equate, what it nests.

What cannot be read is no fault here: it is left out, or noted as what refuses a block. Spark says what it thinks of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from sqlglot import exp

from ..errors import UnknownName
from .aggregates import is_aggregate
from .blocks import (
    ANTI,
    FULL,
    INNER,
    LEFT,
    RIGHT,
    SEMI,
    Block,
    Body,
    Common,
    Equality,
    Joined,
    Nested,
    Relation,
    SetOf,
    Step,
    outputs_of,
)
from .bound import NONDETERMINISTIC
from .fragment import Ref, quote_name
from .grouping_sets import has_sets, nodes_of
from .join_graph import Span
from .scope import EXACT, Output, Scope, unknown_table, walk_outside_subqueries
from .scope import Relation as Named

PIVOT = "PIVOT and UNPIVOT are not read, whose columns Spark alone knows"

_SIDES = {"LEFT": LEFT, "RIGHT": RIGHT, "FULL": FULL}
_REFUSED = {
    "pivots": PIVOT,
    "match": "MATCH_RECOGNIZE is not read",
}


@dataclass
class BlockReader:
    """Reads one statement.

    Attributes
    ----------
    outside : Scope
        The statement's text and schema.
    types : dict of Ref to str
        The types of columns, as far as the schema tells.
    scopes : dict
        Of each block the names in its FROM.
    natural : bool
        Whether there is a NATURAL JOIN.
    unread : frozenset of str
        The names that stand for tables where they were not looked for.
    open : bool
        Whether there are columns that Spark alone knows: of a table function, a PIVOT.
    """

    outside: Scope
    types: dict[Ref, str] = field(default_factory=dict)
    scopes: dict[int, Scope] = field(default_factory=dict)
    numbers: int = 0
    natural: bool = False
    unread: frozenset[str] = frozenset()
    open: bool = False
    _seen: set[int] = field(default_factory=set)

    def read(self) -> Block | SetOf:
        """The whole statement.

        Raises
        ------
        UnknownName
            For a table that the schema does not have.
        """
        body = self._body(self.outside.source.tree, {}, ())
        assert isinstance(body, Block | SetOf), "a statement is a query"
        tables = self.outside.source.tree.find_all(exp.Table)
        self.unread = frozenset(t.name.lower() for t in tables if id(t) not in self._seen)
        return body

    def _number(self) -> int:
        self.numbers += 1
        return self.numbers - 1

    def _body(self, query: exp.Expr, named: Mapping[str, Common], outer: tuple[Scope, ...]) -> Body | None:
        """A query; None of what is none."""
        node: exp.Expr = query
        while isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            named = self._with(node, named)
            node = node.this
        named = self._with(node, named)
        if isinstance(node, exp.SetOperation):
            left, right = self._body(node.left, named, outer), self._body(node.right, named, outer)
            if left is None or right is None:
                return None
            word = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}[type(node)]
            if word == "union" and not node.args.get("distinct"):
                word = "union all"
            limited = node.args.get("limit") or node.args.get("offset")
            place = self.outside.span_of(node)
            return SetOf(word, left, right, place, self._place(limited))
        return self._select(node, named, outer) if isinstance(node, exp.Select) else None

    def _with(self, node: exp.Expr, named: Mapping[str, Common]) -> Mapping[str, Common]:
        with_ = node.args.get("with_")
        if with_ is None:
            return named
        found = dict(named)
        for one in with_.expressions:
            if with_.args.get("recursive"):
                place = self.outside.span_of(one)
                found[one.alias.lower()] = Common(
                    one.alias, _refusing("WITH RECURSIVE is not read", place), []
                )
                continue
            body = self._body(one.this, found, ())
            if body is None:
                continue
            names = one.alias_column_names or [name for name, _ in outputs_of(body)]
            end = _end_of(one.args["alias"].columns) if one.alias_column_names else None
            found[one.alias.lower()] = Common(one.alias, body, list(names), end)
        return found

    def _select(self, node: exp.Select, named: Mapping[str, Common], outer: tuple[Scope, ...]) -> Block:
        scope = replace(self.outside, relations=[], merged={}, star=[])
        chain = (scope, *outer)
        block = Block(None, node=node)
        self.scopes[id(block)] = scope
        for key, why in _REFUSED.items():
            for part in _nodes(node.args.get(key)):
                block.refused.append((why, self.outside.span_of(part)))
        if node.args.get("from_") is not None:
            block.source = self._from(node, block, named, chain)
        for view in _nodes(node.args.get("laterals")):
            self._function(view, block, scope)
        where = node.args.get("where")
        if where is not None:
            block.equal = self._equalities(where.this, chain)
            block.inner = self._nested(where.this, named, chain, positive=True)
        self._read_list(node, block, named, chain)
        self._read_groups(node, block, chain)
        for key in ("having", "order", "qualify"):
            clause = node.args.get(key)
            if clause is not None:
                block.inner += self._nested(clause, named, chain, positive=False)
        block.limited = self._place(node.args.get("limit") or node.args.get("offset"))
        return block

    def _place(self, node: exp.Expr | None) -> Span | None:
        return None if node is None else self.outside.span_of(node)

    # What stands in FROM.

    def _from(
        self, node: exp.Select, block: Block, named: Mapping[str, Common], chain: tuple[Scope, ...]
    ) -> Joined:
        """FROM: joins are taken from left to right, as Spark does, whether commas or words say them."""
        first = self._relation(node.args["from_"].this, block, named, chain)
        whole = first if isinstance(first, Joined) else Joined(first)
        for join in node.args.get("joins") or ():
            self._join(join, whole, block, named, chain)
        return whole

    def _join(
        self,
        join: exp.Join,
        part: Joined,
        block: Block,
        named: Mapping[str, Common],
        chain: tuple[Scope, ...],
    ) -> None:
        scope, place = chain[0], self.outside.span_of(join)
        left = list(scope.relations)
        right = self._relation(join.this, block, named, chain)
        kind = str(join.kind).upper()
        step = Step(_SIDES.get(join.side.upper(), INNER), right, place=place)
        if kind in ("SEMI", "ANTI"):
            step.kind = SEMI if kind == "SEMI" else ANTI
        theirs = scope.relations[len(left) :]
        condition = join.args.get("on")
        if condition is not None:
            step.condition = condition
            step.equal = self._equalities(condition, chain)
            step.inner = self._nested(condition, named, chain, positive=True)
        names = [i.name for i in join.args.get("using") or ()]
        if join.method.upper() == "NATURAL":
            self.natural = True
            offered = [o for r in theirs for o in r.outputs]
            known, beside = {o.name.lower() for o in offered}, {id(o) for o in offered}
            # In the order of the left side.
            names = [o.name for o in scope.star if id(o) not in beside and o.name.lower() in known]
        for name in names:
            self._using(name, step, left, theirs, scope)
        hidden = {n.lower() for n in names}
        merged = [scope.merged[n.lower()] for n in names if n.lower() in scope.merged]
        scope.star = merged + [o for o in scope.star if o.name.lower() not in hidden]
        if step.kind in (SEMI, ANTI):
            # Its columns are not there outside of the condition.
            scope.relations = left
            gone = {id(o) for r in theirs for o in r.outputs}
            scope.star = [o for o in scope.star if id(o) not in gone]
        part.steps.append(step)

    def _using(self, name: str, step: Step, left: list[Named], right: list[Named], scope: Scope) -> None:
        mine, theirs = scope.find(name, left), scope.find(name, right)
        one = scope.merged.get(name.lower()) or (mine[0][1] if mine else None)
        other = theirs[0][1] if theirs else None
        if one is None or other is None or not isinstance(one.bound, Ref) or not isinstance(other.bound, Ref):
            return
        step.equal.append(Equality(one.bound, other.bound))
        kept = other if step.kind == RIGHT else one
        if step.kind == FULL:
            made = Ref(self._number(), name)
            step.merged.append((made, one.bound, other.bound))
            kept = Output(name, one.type, made)
            if one.bound in self.types:
                self.types[made] = self.types[one.bound]
        scope.merged[name.lower()] = kept

    def _relation(
        self, node: exp.Expr, block: Block, named: Mapping[str, Common], chain: tuple[Scope, ...]
    ) -> Relation | Joined:
        """One item of FROM, with what is joined to it in parentheses."""
        for key in ("sample", "pivots", "version", "when"):
            if node.args.get(key):
                block.refused.append((_MODIFIERS[key], self.outside.span_of(node)))
        inner = node
        while isinstance(inner, exp.Subquery) and not inner.alias and isinstance(inner.this, exp.Subquery):
            inner = inner.this
        if isinstance(inner, exp.Subquery) and isinstance(inner.this, exp.Table) and not inner.alias:
            found = self._relation(inner.this, block, named, chain)
            return self._with_joins(found, [*(inner.args.get("joins") or ())], block, named, chain)
        own = (inner.alias,) if inner.alias else ()
        if isinstance(inner, exp.Subquery):
            body = self._body(inner, named, ())
            relation = self._of_body(inner, body, block, own, chain[0], known=not node.args.get("pivots"))
        elif isinstance(inner, exp.Table) and isinstance(inner.this, exp.Identifier):
            relation = self._table(inner, named, block, chain[0], known=not node.args.get("pivots"))
        elif isinstance(inner, exp.Lateral) and isinstance(inner.this, exp.Subquery):
            # For each row before it, as a subquery of WHERE; it offers no key.
            body = self._body(inner.this, named, chain)
            if body is not None:
                block.inner.append(Nested(body, None, False, self.outside.span_of(inner)))
            names = inner.alias_column_names or [name for name, _ in outputs_of(body)] if body else []
            relation = Relation(self._number(), list(names), _typed(own), opaque=not names)
            self._offer(relation, own, block, chain[0])
        elif isinstance(inner, exp.Lateral):
            relation = self._function(inner, block, chain[0])
        else:
            relation = self._of_body(inner, None, block, own, chain[0])
        return self._with_joins(relation, node.args.get("joins") or (), block, named, chain)

    def _function(self, node: exp.Expr, block: Block, scope: Scope) -> Relation:
        """What a function makes of each row before it, by LATERAL or LATERAL VIEW; it has no key."""
        names = node.alias_column_names
        self.open |= not names
        own = (node.alias,) if node.alias else ()
        relation = Relation(self._number(), list(names), _typed(own), opaque=not names)
        self._offer(relation, own, block, scope)
        return relation

    def _with_joins(
        self,
        first: Relation | Joined,
        joins: Iterable[exp.Join],
        block: Block,
        named: Mapping[str, Common],
        chain: tuple[Scope, ...],
    ) -> Relation | Joined:
        whole = first
        for join in joins:
            whole = whole if isinstance(whole, Joined) else Joined(whole)
            self._join(join, whole, block, named, chain)
        return whole

    def _table(
        self, node: exp.Table, named: Mapping[str, Common], block: Block, scope: Scope, *, known: bool = True
    ) -> Relation:
        self._seen.add(id(node))
        parts = tuple(p.name for p in node.parts)
        own = (node.alias,) if node.alias else parts
        common = named.get(parts[0].lower()) if len(parts) == 1 else None
        if common is not None:
            return self._of_body(node, common, block, own, scope, known=known)
        table = scope.table(".".join(parts))
        first, last = self.outside.span_of(node.parts[0]), self.outside.span_of(node.parts[-1])
        place = Span(first.start, last.end)
        if table is None:
            raise unknown_table(".".join(parts), place, self.outside)
        names = list(node.alias_column_names or (c.name for c in table.columns if known))
        self.open |= not names
        relation = Relation(
            self._number(),
            names,
            _typed(own),
            place,
            table.name,
            tuple(c.name for c in table.columns),
            tuple(c.type for c in table.columns),
            None if node.alias else parts[-1],
        )
        self._offer(relation, own, block, scope)
        return relation

    def _of_body(
        self,
        node: exp.Expr,
        body: Body | None,
        block: Block,
        own: tuple[str, ...],
        scope: Scope,
        *,
        known: bool = True,
    ) -> Relation:
        offered = [] if body is None or not known else outputs_of(body)
        names = node.alias_column_names or [name for name, _ in offered]
        self.open |= not names
        relation = Relation(self._number(), list(names), _typed(own), body=body, opaque=body is None)
        if node.alias_column_names:
            relation.columns_end = _end_of(node.args["alias"].columns)
        for position, (_, refs) in enumerate(offered[: len(names)]):
            if len(refs) == 1 and refs[0] in self.types:
                self.types[relation.ref(position)] = self.types[refs[0]]
        self._offer(relation, own, block, scope)
        return relation

    def _offer(self, relation: Relation, own: tuple[str, ...], block: Block, scope: Scope) -> None:
        kinds = relation.kinds or (None,) * len(relation.names)
        outputs = tuple(
            Output(name, self.types.get(relation.ref(i)) or kind, relation.ref(i))
            for i, (name, kind) in enumerate(zip(relation.names, kinds, strict=False))
        )
        for output in outputs:
            if output.type is not None and isinstance(output.bound, Ref):
                self.types[output.bound] = output.type
        block.relations.append(relation)
        scope.relations.append(Named(own, outputs, relation.place or Span(0, 0)))
        scope.star.extend(outputs)

    # What expressions say.

    def ref_of(self, node: exp.Expr, chain: tuple[Scope, ...]) -> Ref | None:
        """The column that an expression is; None of any other, and where a name may mean several."""
        node = node.unnest()
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return None
        for scope in chain:
            try:
                output, used = scope.resolve(node)
            except UnknownName as fault:
                opaque = any(not r.outputs for r in scope.relations)
                if fault.code == "SKIMQL_AMBIGUOUS_NAME" or (opaque and not node.table):
                    return None
                continue
            return output.bound if used == len(node.parts) and isinstance(output.bound, Ref) else None
        return None

    def refs_of(self, node: exp.Expr, chain: tuple[Scope, ...]) -> tuple[Ref, ...]:
        """The column that an expression is, or those that it is the COALESCE of; none of others."""
        node = node.unnest()
        parts = [node.this, *node.expressions] if isinstance(node, exp.Coalesce) else [node]
        refs = [self.ref_of(p, chain) for p in parts]
        return tuple(r for r in refs if r is not None) if None not in refs else ()

    def _equalities(self, condition: exp.Expr, chain: tuple[Scope, ...]) -> list[Equality]:
        condition = condition.unnest()
        if isinstance(condition, exp.And):
            return self._equalities(condition.left, chain) + self._equalities(condition.right, chain)
        if isinstance(condition, exp.Or):
            # What all of its branches say.
            other = self._equalities(condition.right, chain)
            swapped = [replace(e, left=e.right, right=e.left) for e in other]
            return [e for e in self._equalities(condition.left, chain) if e in other or e in swapped]
        if not isinstance(condition, exp.EQ | exp.NullSafeEQ):
            return []
        left, right = self.ref_of(condition.left, chain), self.ref_of(condition.right, chain)
        if left is None or right is None:
            return []
        return [Equality(left, right, isinstance(condition, exp.NullSafeEQ))]

    def _nested(
        self, node: exp.Expr, named: Mapping[str, Common], chain: tuple[Scope, ...], *, positive: bool
    ) -> list[Nested]:
        """The subqueries of an expression, none of those in them."""
        found: list[Nested] = []
        stack = [(node, positive)]
        while stack:
            part, sure = stack.pop()
            if isinstance(part, exp.Query) and part is not node:
                body = self._body(part, named, chain)
                if body is not None:
                    found.append(Nested(body, None, False, self.outside.span_of(part)))
                continue
            if isinstance(part, exp.In) and part.args.get("query") is not None:
                body = self._body(part.args["query"], named, chain)
                if body is not None:
                    tested = self.ref_of(part.this, chain)
                    found.append(Nested(body, tested, sure, self.outside.span_of(part)))
                stack.append((part.this, False))
                continue
            sure = sure and isinstance(part, exp.And | exp.Or | exp.Paren)
            stack.extend((child, sure) for child in part.iter_expressions())
        return found

    # What a SELECT offers.

    def _read_list(
        self, node: exp.Select, block: Block, named: Mapping[str, Common], chain: tuple[Scope, ...]
    ) -> None:
        scope = chain[0]
        for item in node.expressions:
            inner = item.this if isinstance(item, exp.Alias) else item
            star = item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else item
            if isinstance(star, exp.Star):
                block.outputs += self._starred(item, star, scope)
                continue
            name = item.alias if isinstance(item, exp.Alias) else item.name or "?"
            block.outputs.append((name, self.refs_of(inner, chain)))
            if not isinstance(inner, exp.Column):
                block.inner += self._nested(inner, named, chain, positive=False)
            self._read_windows(inner, node, block, chain)
        if node.args.get("qualify") is not None:
            self._read_windows(node.args["qualify"], node, block, chain)
        distinct = node.args.get("distinct")
        source = self.outside.source
        if distinct is not None:
            first, _ = source.token_range(node)
            block.distinct = source.span_between(first, first)
        from_ = node.args.get("from_")
        ends = [source.token_range(i)[1] for i in node.expressions]
        if from_ is not None:
            # The list ends where FROM begins, whatever names itself by AS.
            first, _ = source.token_range(from_.this)
            while first > 0 and source.tokens[first].text.upper() != "FROM":
                first -= 1
            ends = [first - 1]
        block.list_end = source.tokens[max(ends, default=0)].end + 1

    def _read_windows(
        self, node: exp.Expr, select: exp.Select, block: Block, chain: tuple[Scope, ...]
    ) -> None:
        named = {w.name.lower(): w for w in select.args.get("windows") or ()}
        for part in walk_outside_subqueries(node):
            if isinstance(part, exp.Window):
                # ``OVER w`` and ``OVER (w ...)`` partition as the window of that name does.
                own = named.get(part.alias.lower(), part)
                by = [self.refs_of(e, chain) for e in own.args.get("partition_by") or ()]
                block.windows.append((self.outside.span_of(part), by))

    def _starred(self, item: exp.Expr, star: exp.Expr, scope: Scope) -> list[tuple[str, tuple[Ref, ...]]]:
        outputs = scope.star
        if isinstance(item, exp.Column):
            names = tuple(p.name for p in item.parts[:-1])
            own = next((r for r in scope.relations if r.answers_to(names)), None)
            if own is None:
                # The fields of a struct.
                message = f"{self.outside.source.text_of(item)} may be any number of columns"
                raise self.outside.fault(message, "SKIMQL_NOT_DECOMPOSED", item, EXACT)
            outputs = list(own.outputs)
        left_out = {e.name.lower() for e in star.args.get("except_") or ()}
        kept = [o for o in outputs if o.name.lower() not in left_out]
        # Two columns of one relation that have one name are told apart by no name.
        times = Counter(o.bound for o in outputs if isinstance(o.bound, Ref))
        return [
            (o.name, (o.bound,) if isinstance(o.bound, Ref) and times[o.bound] == 1 else ()) for o in kept
        ]

    def _read_groups(self, node: exp.Select, block: Block, chain: tuple[Scope, ...]) -> None:
        group, items = node.args.get("group"), node.expressions
        aggregated = any(
            is_aggregate(p) and not _windowed(p) for i in items for p in walk_outside_subqueries(i)
        )
        if group is None:
            if aggregated or node.args.get("having") is not None:
                block.grouped, block.group_place = [], self._first_aggregate(node)
            return
        block.grouped, block.group_place = [], self.outside.span_of(group)
        nodes = list(group.expressions)
        if has_sets(group):
            block.several_sets, nodes = True, nodes_of(group)
        if group.args.get("all"):
            plain = [i for i in items if not any(map(is_aggregate, walk_outside_subqueries(i)))]
            nodes = [i.this if isinstance(i, exp.Alias) else i for i in plain]
        block.grouped = [self._grouped(n, node, chain) for n in nodes]

    def _grouped(self, node: exp.Expr, select: exp.Select, chain: tuple[Scope, ...]) -> tuple[Ref, ...]:
        items = select.expressions
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
            number = int(node.name) - 1
            node = items[number] if 0 <= number < len(items) else node
            node = node.this if isinstance(node, exp.Alias) else node
        found = self.refs_of(node, chain[:1])
        if found or not isinstance(node, exp.Column) or node.table:
            return found
        named = [i for i in items if isinstance(i, exp.Alias) and i.alias.lower() == node.name.lower()]
        return self.refs_of(named[0].this, chain) if named else self.refs_of(node, chain)

    def _first_aggregate(self, node: exp.Select) -> Span:
        parts = (p for i in node.expressions for p in walk_outside_subqueries(i) if is_aggregate(p))
        return self.outside.span_of(next(parts, node))


_MODIFIERS = {
    "sample": "TABLESAMPLE draws from all rows",
    "pivots": PIVOT,
    "version": "time travel is not read",
    "when": "time travel is not read",
}


def changing_call(outside: Scope) -> tuple[str, Span] | None:
    """The first function of a statement that is different at every call."""
    tokens = outside.source.tokens
    for token, after in pairwise(tokens):
        if token.text.lower() in NONDETERMINISTIC and after.text == "(":
            return token.text.lower(), Span(token.start, token.end + 1)
    return None


def _windowed(node: exp.Expr) -> bool:
    above = node.parent
    while isinstance(above, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        above = above.parent
    return isinstance(above, exp.Window)


def _refusing(why: str, place: Span) -> Block:
    return Block(None, refused=[(why, place)])


def _typed(name: tuple[str, ...]) -> str:
    return ".".join(map(quote_name, name))


def _end_of(names: list[exp.Expr]) -> int:
    return int(names[-1].meta["end"]) + 1


def _nodes(value: object) -> list[exp.Expr]:
    return [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, exp.Expr)]
