//! Selectors: the expressions of the SELECT clause and of GROUP BY.

use super::{K, Parser, Res};
use crate::ast::{Arithmetic, CellMeta, Selectable, Selector, Selectors};
use crate::lexer::Kind;

impl Parser<'_> {
    /// `*` or a list of selectors.
    pub(super) fn selectors(&mut self) -> Res<Selectors> {
        if self.eat(Kind::Star) {
            return Ok(Selectors::All);
        }
        Ok(Selectors::List(self.comma_list(Self::selector)?))
    }

    fn selector(&mut self) -> Res<Selector> {
        let expression = self.selectable()?;
        let alias = if self.eat_word(K::As) { Some(self.name()?) } else { None };
        Ok(Selector { expression, alias })
    }

    pub(super) fn selectable(&mut self) -> Res<Selectable> {
        let mut left = self.select_product()?;
        loop {
            let operator = match self.kind() {
                Kind::Plus => Arithmetic::Add,
                Kind::Minus => Arithmetic::Subtract,
                _ => return Ok(left),
            };
            self.skip();
            let height = self.height;
            let right = self.select_product()?;
            self.grow(height)?;
            left = Selectable::Binary(operator, Box::new(left), Box::new(right));
        }
    }

    fn select_product(&mut self) -> Res<Selectable> {
        let mut left = self.select_signed()?;
        while let Some(operator) = self.product_operator() {
            self.skip();
            let height = self.height;
            let right = self.select_signed()?;
            self.grow(height)?;
            left = Selectable::Binary(operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn select_signed(&mut self) -> Res<Selectable> {
        if !self.eat(Kind::Minus) {
            let primary = self.select_primary()?;
            return self.select_parts(primary);
        }
        let operand = self.nested(Self::select_signed)?;
        self.grow(0)?;
        Ok(Selectable::Negate(Box::new(operand)))
    }

    /// `.field`, `[key]` and `[from..to]` after an expression.
    fn select_parts(&mut self, mut receiver: Selectable) -> Res<Selectable> {
        loop {
            match self.kind() {
                Kind::Dot => {
                    self.skip();
                    receiver = Selectable::Field(Box::new(receiver), self.name()?);
                    self.grow(0)?;
                }
                Kind::OpenBracket => {
                    let height = self.height;
                    receiver = self.nested(|p| p.select_part_in_brackets(receiver))?;
                    self.grow(height)?;
                }
                _ => return Ok(receiver),
            }
        }
    }

    fn select_part_in_brackets(&mut self, receiver: Selectable) -> Res<Selectable> {
        self.skip();
        let from = if self.kind() == Kind::Range { None } else { Some(self.term()?) };
        let mut height = if from.is_some() { self.height } else { 0 };
        let receiver = Box::new(receiver);
        let selected = if self.eat(Kind::Range) {
            // One bound may be left out, not both.
            let to = if from.is_some() && self.kind() == Kind::CloseBracket {
                None
            } else {
                let to = self.term()?;
                height = height.max(self.height);
                Some(to)
            };
            Selectable::Slice(receiver, from, to)
        } else {
            match from {
                Some(key) => Selectable::Element(receiver, key),
                None => return self.no_viable(),
            }
        };
        self.height = height;
        self.expect(Kind::CloseBracket, "']'")?;
        Ok(selected)
    }

    /// An expression without operators and without parts.
    fn select_primary(&mut self) -> Res<Selectable> {
        self.height = 0;
        if let Some(literal) = self.constant()? {
            return Ok(Selectable::Literal(literal));
        }
        if let Some(marker) = self.marker_before_dot()? {
            return Ok(Selectable::Marker(marker));
        }
        match self.kind() {
            Kind::OpenParen => self.nested(Self::select_parentheses),
            Kind::OpenBracket => self.nested(|p| {
                p.skip();
                let items = p.selectables_until(Kind::CloseBracket, "']'")?;
                Ok(Selectable::List(items))
            }),
            Kind::OpenBrace => self.nested(Self::select_braces),
            Kind::Keyword(K::Null) => {
                self.skip();
                Ok(Selectable::Null)
            }
            Kind::Keyword(word) if self.kind_at(1) == Kind::OpenParen => match word {
                K::Count if self.kind_at(2) == Kind::Star => self.count_rows(),
                K::Writetime => self.nested(|p| p.cell_meta(CellMeta::Writetime)),
                K::Maxwritetime => self.nested(|p| p.cell_meta(CellMeta::MaxWritetime)),
                K::Ttl => self.nested(|p| p.cell_meta(CellMeta::Ttl)),
                K::Cast => self.nested(Self::select_cast),
                _ => self.select_call(),
            },
            _ if self.is_call_at(0) => self.select_call(),
            _ if self.is_name_at(0) => {
                let column = self.name()?;
                self.looked_ahead();
                Ok(Selectable::Column(column))
            }
            _ => self.no_viable(),
        }
    }

    /// A marker; `?` may not be a keyspace's name, so `?.f()` is for the function's own message.
    fn marker_before_dot(&mut self) -> Res<Option<u32>> {
        if self.kind() == Kind::Question && self.is_call_at(0) {
            return Ok(None);
        }
        self.marker()
    }

    fn count_rows(&mut self) -> Res<Selectable> {
        self.skip();
        self.skip();
        self.skip();
        self.expect(Kind::CloseParen, "')'")?;
        Ok(Selectable::CountRows)
    }

    fn select_call(&mut self) -> Res<Selectable> {
        let name = self.function_name()?;
        self.expect(Kind::OpenParen, "'('")?;
        let arguments = self.nested(|p| p.selectables_until(Kind::CloseParen, "')'"))?;
        Ok(Selectable::Function(name, arguments))
    }

    /// None or more expressions and the token that ends them.
    fn selectables_until(&mut self, close: Kind, shown: &'static str) -> Res<Vec<Selectable>> {
        if self.eat(close) {
            return Ok(Vec::new());
        }
        let items = self.selectables()?;
        self.expect(close, shown)?;
        self.grow(0)?;
        Ok(items)
    }

    /// One or more expressions; `height` is that of the highest.
    fn selectables(&mut self) -> Res<Vec<Selectable>> {
        let mut height = 0;
        let items = self.comma_list(|p| {
            let item = p.selectable()?;
            height = height.max(p.height);
            Ok(item)
        })?;
        self.height = height;
        Ok(items)
    }

    /// `writetime(column.part)`; the column may not be `""`.
    fn cell_meta(&mut self, kind: CellMeta) -> Res<Selectable> {
        self.skip();
        self.skip();
        self.height = 0;
        let column = Selectable::Column(self.name()?);
        let operand = self.select_parts(column)?;
        self.expect(Kind::CloseParen, "')'")?;
        self.grow(0)?;
        Ok(Selectable::CellMeta(kind, Box::new(operand)))
    }

    fn select_cast(&mut self) -> Res<Selectable> {
        self.skip();
        self.skip();
        let operand = self.selectable()?;
        self.expect_word(K::As)?;
        let target = self.native_type()?;
        self.expect(Kind::CloseParen, "')'")?;
        self.grow(0)?;
        Ok(Selectable::Cast(Box::new(operand), target))
    }

    /// `(type) expression`, else a tuple or a mere parenthesis. A name in parentheses can start
    /// either; it is a type if an expression without operators follows.
    fn select_parentheses(&mut self) -> Res<Selectable> {
        let mark = self.mark();
        if let Some(data_type) = self.guess_type() {
            let alias = self.is(K::As) && self.is_name_at(1);
            if !alias && let Ok(operand) = self.nested(Self::select_primary) {
                self.grow(0)?;
                return Ok(Selectable::TypeHint(data_type, Box::new(operand)));
            }
            self.go_back(mark);
        }
        self.skip();
        let items = self.selectables()?;
        self.expect(Kind::CloseParen, "')'")?;
        self.grow(0)?;
        Ok(Selectable::Tuple(items))
    }

    /// `{}`, a set or a map (or a user type's fields, which look like a map of columns).
    fn select_braces(&mut self) -> Res<Selectable> {
        self.skip();
        if self.eat(Kind::CloseBrace) {
            return Ok(Selectable::Set(Vec::new()));
        }
        let mut height = 0;
        let mut one = |p: &mut Self| -> Res<Selectable> {
            let item = p.selectable()?;
            height = height.max(p.height);
            Ok(item)
        };
        let first = one(self)?;
        let literal = if self.kind() == Kind::Colon {
            let mut entries = Vec::new();
            let mut key = first;
            loop {
                self.expect(Kind::Colon, "':'")?;
                entries.push((key, one(self)?));
                if !self.eat(Kind::Comma) {
                    break Selectable::Map(entries);
                }
                key = one(self)?;
            }
        } else {
            let mut items = vec![first];
            while self.eat(Kind::Comma) {
                items.push(one(self)?);
            }
            Selectable::Set(items)
        };
        self.expect(Kind::CloseBrace, "'}'")?;
        self.grow(height)?;
        Ok(literal)
    }
}
