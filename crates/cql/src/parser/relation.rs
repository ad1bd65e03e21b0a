//! WHERE clauses.

use super::{K, Parser, Res};
use crate::ast::{InTuples, InValues, Operator, Relation, TupleValue};
use crate::lexer::Kind;

impl Parser<'_> {
    pub(super) fn relations(&mut self) -> Res<Vec<Relation>> {
        self.and_list(|p| match p.kind() {
            Kind::Expr => p.expression_relation(),
            _ => p.relation(),
        })
    }

    /// `expr(index, term)`.
    fn expression_relation(&mut self) -> Res<Relation> {
        self.skip();
        let index = self.plain_index_name()?;
        self.expect(Kind::Comma, "','")?;
        let value = self.term()?;
        self.expect(Kind::CloseParen, "')'")?;
        Ok(Relation::Expression(index, value))
    }

    /// One relation, in any number of parentheses.
    fn relation(&mut self) -> Res<Relation> {
        match self.kind() {
            Kind::OpenParen if !self.is_tuple_of_columns() => self.nested(|p| {
                p.skip();
                let relation = p.relation()?;
                p.expect(Kind::CloseParen, "')'")?;
                Ok(relation)
            }),
            Kind::OpenParen => self.tuple_relation(),
            Kind::Keyword(K::Token) => {
                self.skip();
                let columns = self.paren_list(Self::column)?;
                let operator = self.comparison()?;
                Ok(Relation::Token(columns, operator, self.term()?))
            }
            _ => self.column_relation(),
        }
    }

    fn is_tuple_of_columns(&self) -> bool {
        self.is_column_at(1) && matches!(self.kind_at(2), Kind::Comma | Kind::CloseParen)
    }

    fn column_relation(&mut self) -> Res<Relation> {
        let column = self.column()?;
        match self.kind() {
            Kind::OpenBracket => {
                self.skip();
                let key = self.nested(Self::term)?;
                self.expect(Kind::CloseBracket, "']'")?;
                let operator = self.comparison()?;
                Ok(Relation::Element(column, key, operator, self.term()?))
            }
            Kind::Keyword(K::In) => {
                self.skip();
                Ok(Relation::In(column, self.in_values()?))
            }
            Kind::Keyword(K::Is) => {
                self.skip();
                self.expect_words(&[K::Not, K::Null])?;
                Ok(Relation::NotNull(column))
            }
            Kind::Keyword(K::Like) => {
                self.skip();
                Ok(Relation::Column(column, Operator::Like, self.term()?))
            }
            Kind::Keyword(K::Contains) => {
                let operator = self.contains();
                Ok(Relation::Column(column, operator, self.term()?))
            }
            _ => {
                let operator = self.comparison()?;
                Ok(Relation::Column(column, operator, self.term()?))
            }
        }
    }

    /// `CONTAINS [KEY]`.
    pub(super) fn contains(&mut self) -> Operator {
        self.skip();
        if !self.is_bare(K::Key) {
            return Operator::Contains;
        }
        self.skip();
        Operator::ContainsKey
    }

    /// The six operators that every kind of left side takes.
    pub(super) fn comparison(&mut self) -> Res<Operator> {
        let operator = match self.kind() {
            Kind::Equal => Operator::Eq,
            Kind::Less => Operator::Lt,
            Kind::LessEqual => Operator::Lte,
            Kind::Greater => Operator::Gt,
            Kind::GreaterEqual => Operator::Gte,
            Kind::NotEqual => Operator::Neq,
            _ => return self.no_viable(),
        };
        self.skip();
        Ok(operator)
    }

    /// What follows `IN` for single values.
    pub(super) fn in_values(&mut self) -> Res<InValues> {
        if let Some(marker) = self.marker()? {
            return Ok(InValues::Marker(marker));
        }
        Ok(InValues::List(self.paren_list_or_empty(Self::term)?))
    }

    fn tuple_relation(&mut self) -> Res<Relation> {
        let columns = self.paren_list(Self::column)?;
        if self.eat_word(K::In) {
            return Ok(Relation::TupleIn(columns, self.in_tuples()?));
        }
        let operator = self.comparison()?;
        let value = match self.marker()? {
            Some(marker) => TupleValue::Marker(marker),
            None => TupleValue::Literal(self.nested(Self::tuple_items)?),
        };
        Ok(Relation::Tuple(columns, operator, value))
    }

    fn in_tuples(&mut self) -> Res<InTuples> {
        if let Some(marker) = self.marker()? {
            return Ok(InTuples::Marker(marker));
        }
        if self.kind() == Kind::OpenParen && matches!(self.kind_at(1), Kind::Question | Kind::Colon)
        {
            return Ok(InTuples::Markers(self.paren_list(|p| match p.marker()? {
                Some(marker) => Ok(marker),
                None => p.no_viable(),
            })?));
        }
        Ok(InTuples::List(self.paren_list_or_empty(|p| p.nested(Self::tuple_items))?))
    }
}
