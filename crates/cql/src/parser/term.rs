//! Terms: what stands on the right side of a relation, in VALUES, in SET.

use super::{K, Parser, Res};
use crate::ast::{Arithmetic, Literal, LiteralKind, Term};
use crate::lexer::Kind;

impl Parser<'_> {
    /// A constant, if one stands here.
    pub(super) fn constant(&mut self) -> Res<Option<Literal>> {
        let kind = match self.kind() {
            Kind::String => {
                let text = self.string()?;
                return Ok(Some(Literal { kind: LiteralKind::String, text }));
            }
            Kind::Integer => LiteralKind::Integer,
            Kind::Float => LiteralKind::Float,
            Kind::Boolean => LiteralKind::Boolean,
            Kind::Duration => LiteralKind::Duration,
            Kind::Uuid => LiteralKind::Uuid,
            Kind::Hex => LiteralKind::Hex,
            Kind::Keyword(K::Nan) | Kind::NegativeNan => return Ok(Some(self.named_float("NaN"))),
            Kind::Keyword(K::Infinity) => return Ok(Some(self.named_float("Infinity"))),
            Kind::NegativeInfinity => return Ok(Some(self.named_float("-Infinity"))),
            _ => return Ok(None),
        };
        let text = self.source().to_owned();
        // Cassandra takes every such number through a double on its way to a decimal, and stumbles
        // here.
        if kind == LiteralKind::Float && text.parse().is_ok_and(f64::is_infinite) {
            return self.rule(format!(
                "Failed parsing statement: [{}] reason: NumberFormatException Character I is neither a decimal digit number, decimal point, nor \"e\" notation exponential mark.",
                self.text
            ));
        }
        self.skip();
        Ok(Some(Literal { kind, text }))
    }

    fn named_float(&mut self, text: &str) -> Literal {
        self.skip();
        Literal { kind: LiteralKind::Float, text: text.to_owned() }
    }

    /// An integer or a marker: limits, timestamps, times to live.
    pub(super) fn int_value(&mut self) -> Res<Term> {
        if let Some(marker) = self.marker()? {
            return Ok(Term::Marker(marker));
        }
        match self.kind() {
            Kind::Integer => {
                let text = self.source().to_owned();
                self.skip();
                Ok(Term::Literal(Literal { kind: LiteralKind::Integer, text }))
            }
            _ => self.no_viable(),
        }
    }

    pub(super) fn term(&mut self) -> Res<Term> {
        let mut left = self.product()?;
        loop {
            let operator = match self.kind() {
                // `SET l = [1] + l`: the column is not part of the term.
                Kind::Plus if self.is_column_at(1) && !self.continues_name(2) => break,
                Kind::Plus => Arithmetic::Add,
                Kind::Minus => Arithmetic::Subtract,
                _ => break,
            };
            self.skip();
            let height = self.height;
            let right = self.product()?;
            self.grow(height)?;
            left = Term::Binary(operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn continues_name(&self, ahead: usize) -> bool {
        matches!(self.kind_at(ahead), Kind::OpenParen | Kind::Dot)
    }

    fn product(&mut self) -> Res<Term> {
        let mut left = self.signed()?;
        while let Some(operator) = self.product_operator() {
            self.skip();
            let height = self.height;
            let right = self.signed()?;
            self.grow(height)?;
            left = Term::Binary(operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    /// The operator that stands here, if it is one of the tighter three.
    pub(super) fn product_operator(&self) -> Option<Arithmetic> {
        match self.kind() {
            Kind::Star => Some(Arithmetic::Multiply),
            Kind::Slash => Some(Arithmetic::Divide),
            Kind::Percent => Some(Arithmetic::Modulo),
            _ => None,
        }
    }

    /// A single minus may precede; `- - 1` is no term (it is a selector).
    fn signed(&mut self) -> Res<Term> {
        if !self.eat(Kind::Minus) {
            return self.simple_term();
        }
        let term = self.simple_term()?;
        self.grow(0)?;
        Ok(Term::Negate(Box::new(term)))
    }

    fn simple_term(&mut self) -> Res<Term> {
        self.height = 0;
        if let Some(literal) = self.constant()? {
            return Ok(Term::Literal(literal));
        }
        if let Some(marker) = self.marker()? {
            return Ok(Term::Marker(marker));
        }
        match self.kind() {
            Kind::Keyword(K::Null) => {
                self.skip();
                Ok(Term::Null)
            }
            Kind::OpenBracket => {
                let items = self.nested(Self::list_items)?;
                Ok(Term::List(items))
            }
            Kind::OpenBrace => self.nested(Self::braces),
            Kind::OpenParen => self.nested(Self::parentheses),
            Kind::Keyword(K::Cast) if self.kind_at(1) == Kind::OpenParen => self.nested(Self::cast),
            _ if self.is_call_at(0) => {
                let name = self.function_name()?;
                let arguments =
                    self.nested(|p| p.terms_between(Kind::OpenParen, Kind::CloseParen, "')'"))?;
                Ok(Term::Function(name, arguments))
            }
            // A name is no term; what follows it could have made it a call.
            _ if self.is_name_at(0) => self.no_viable_at(1),
            _ => self.no_viable(),
        }
    }

    fn list_items(&mut self) -> Res<Vec<Term>> {
        self.terms_between(Kind::OpenBracket, Kind::CloseBracket, "']'")
    }

    /// None or more terms between two tokens.
    fn terms_between(&mut self, open: Kind, close: Kind, shown: &'static str) -> Res<Vec<Term>> {
        self.expect(open, "'('")?;
        if self.eat(close) {
            return Ok(Vec::new());
        }
        let terms = self.terms()?;
        self.expect(close, shown)?;
        self.grow(0)?;
        Ok(terms)
    }

    /// One or more terms; `height` is that of the highest.
    pub(super) fn terms(&mut self) -> Res<Vec<Term>> {
        let mut height = 0;
        let terms = self.comma_list(|p| {
            let term = p.term()?;
            height = height.max(p.height);
            Ok(term)
        })?;
        self.height = height;
        Ok(terms)
    }

    /// `{}`, a set, a map or the fields of a user type: a bare name before a colon tells the last.
    fn braces(&mut self) -> Res<Term> {
        self.skip();
        if self.eat(Kind::CloseBrace) {
            return Ok(Term::Set(Vec::new()));
        }
        let mut height = 0;
        let literal = if self.is_name_at(0) && self.kind_at(1) == Kind::Colon {
            Term::Udt(self.comma_list(|p| {
                let field = p.name()?;
                p.expect(Kind::Colon, "':'")?;
                let value = p.term()?;
                height = height.max(p.height);
                Ok((field, value))
            })?)
        } else {
            let first = self.term()?;
            height = height.max(self.height);
            if self.kind() == Kind::Colon {
                Term::Map(self.map_entries(first, &mut height)?)
            } else {
                let mut items = vec![first];
                while self.eat(Kind::Comma) {
                    items.push(self.term()?);
                    height = height.max(self.height);
                }
                Term::Set(items)
            }
        };
        self.expect(Kind::CloseBrace, "'}'")?;
        self.grow(height)?;
        Ok(literal)
    }

    fn map_entries(&mut self, first: Term, height: &mut u32) -> Res<Vec<(Term, Term)>> {
        let mut entries = Vec::new();
        let mut key = first;
        loop {
            self.expect(Kind::Colon, "':'")?;
            let value = self.term()?;
            *height = (*height).max(self.height);
            entries.push((key, value));
            if !self.eat(Kind::Comma) {
                return Ok(entries);
            }
            key = self.term()?;
            *height = (*height).max(self.height);
        }
    }

    /// `{k: v, ...}` or `{}`, where only a map will do.
    pub(super) fn map_literal(&mut self) -> Res<Vec<(Term, Term)>> {
        self.nested(|p| {
            p.expect(Kind::OpenBrace, "'{'")?;
            if p.eat(Kind::CloseBrace) {
                return Ok(Vec::new());
            }
            let first = p.term()?;
            let mut height = p.height;
            let entries = p.map_entries(first, &mut height)?;
            p.expect(Kind::CloseBrace, "'}'")?;
            Ok(entries)
        })
    }

    /// `(type) term` or a tuple.
    fn parentheses(&mut self) -> Res<Term> {
        if let Some(data_type) = self.type_hint()? {
            let term = self.simple_term()?;
            self.grow(0)?;
            return Ok(Term::TypeHint(data_type, Box::new(term)));
        }
        Ok(Term::Tuple(self.tuple_items()?))
    }

    /// `(a, b)`, where only a tuple will do.
    pub(super) fn tuple_items(&mut self) -> Res<Vec<Term>> {
        self.expect(Kind::OpenParen, "'('")?;
        let terms = self.terms()?;
        self.expect(Kind::CloseParen, "')'")?;
        self.grow(0)?;
        Ok(terms)
    }

    /// `CAST(a AS type)`; the operand takes no operators.
    fn cast(&mut self) -> Res<Term> {
        self.skip();
        self.skip();
        let term = self.simple_term()?;
        self.expect_word(K::As)?;
        let target = self.native_type()?;
        self.expect(Kind::CloseParen, "')'")?;
        self.grow(0)?;
        Ok(Term::Cast(Box::new(term), target))
    }

    /// Whether a term without operators starts that far ahead.
    pub(super) fn starts_simple_term(&self, ahead: usize) -> bool {
        match self.kind_at(ahead) {
            Kind::String
            | Kind::Integer
            | Kind::Float
            | Kind::Boolean
            | Kind::Duration
            | Kind::Uuid
            | Kind::Hex
            | Kind::NegativeNan
            | Kind::NegativeInfinity
            | Kind::Question
            | Kind::OpenBracket
            | Kind::OpenBrace
            | Kind::OpenParen => true,
            Kind::Keyword(K::Null | K::Nan | K::Infinity) => true,
            Kind::Keyword(K::Cast) => self.kind_at(ahead + 1) == Kind::OpenParen,
            // `{('a') : f(1)}` is a map.
            Kind::Colon => self.is_name_at(ahead + 1) && !self.continues_name(ahead + 2),
            _ => self.is_call_at(ahead),
        }
    }
}
