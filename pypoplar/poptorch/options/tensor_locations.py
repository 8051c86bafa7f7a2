"""``Options.TensorLocations``: which memory tensors are in; here all but weights of phases are in that of tiles."""

from __future__ import annotations

from typing import ClassVar, Self

from pypoplar.errors import PoplarTypeError
from pypoplar.poptorch.asserted_errors import AssertedOption
from pypoplar.poptorch.options import option_checks as checks
from pypoplar.poptorch.options.option_values import OptionValues
from pypoplar.tracebacks import public

OF_PHASES = ("onChip", "minElementsForOffChip")  # what phased execution reads of the location of weights


@public
class TensorLocationSettings(OptionValues):
    """Where tensors of a kind are, for the methods of `Options.TensorLocations`. All of this is checked.

    For weights of a model in phases `useOnChipStorage` and `minElementsForOffChip` do what they say; all else changes nothing.

    Parameters
    ----------
    values:
        Values by the names of their attributes; the methods set them.
    """

    def _option(self, method: str) -> str:
        return f"TensorLocationSettings.{method}" if method else "TensorLocationSettings"

    def minElementsForOffChip(self, min_elements: int) -> Self:
        """Keep smaller tensors on the chip.

        Parameters
        ----------
        min_elements:
            The fewest elements of a tensor that is not.

        Raises
        ------
        PoplarTypeError, InvalidOption
            For what is no number of elements.
        """
        return self._keep(minElementsForOffChip=checks.whole_number(self._option("minElementsForOffChip"), min_elements))

    def minElementsForReplicatedTensorSharding(self, min_elements: int) -> Self:
        """Do not spread smaller tensors over replicas.

        Parameters
        ----------
        min_elements:
            The fewest elements of a tensor that is.

        Raises
        ------
        PoplarTypeError, InvalidOption
            For what is no number of elements.
        """
        option = self._option("minElementsForReplicatedTensorSharding")
        return self._keep(minElementsForReplicatedTensorSharding=checks.whole_number(option, min_elements))

    def useOnChipStorage(self, use: bool | None = True) -> Self:
        """Keep tensors on the chip, or off it.

        Parameters
        ----------
        use:
            Which of the two; None leaves it open.

        Raises
        ------
        PoplarTypeError
            For what is neither.
        """
        if use is None:
            self.deleteIfExists("onChip")
            return self
        return self._keep(onChip=checks.flag(self._option("useOnChipStorage"), use))

    def useReplicatedTensorSharding(self, use: bool = True) -> Self:
        """Spread tensors over replicas, of which there is one.

        Parameters
        ----------
        use:
            Whether they are.

        Raises
        ------
        PoplarTypeError
            For what is no bool.
        """
        return self._keep(useReplicatedTensorSharding=checks.flag(self._option("useReplicatedTensorSharding"), use))

    def useIOTilesToLoad(self, use: bool = True) -> Self:
        """Load tensors through tiles that do nothing else.

        Parameters
        ----------
        use:
            Whether they are.

        Raises
        ------
        PoplarTypeError
            For what is no bool.
        """
        return self._keep(useIOTilesToLoad=checks.flag(self._option("useIOTilesToLoad"), use))

    def useIOTilesToStore(self, use: bool = True) -> Self:
        """Store tensors through tiles that do nothing else.

        Parameters
        ----------
        use:
            Whether they are.

        Raises
        ------
        PoplarTypeError
            For what is no bool.
        """
        return self._keep(useIOTilesToStore=checks.flag(self._option("useIOTilesToStore"), use))


@public
class TensorLocationOptions(OptionValues):
    """Where the tensors of a model are, given by `Options.TensorLocations`. All of this is checked and changes nothing."""

    _group: ClassVar[str] = "TensorLocations"

    def numIOTiles(self, num_tiles: int) -> Self:
        """Keep tiles for input and output alone; here all tiles compute.

        Parameters
        ----------
        num_tiles:
            An even number from 32 to 192.

        Raises
        ------
        InvalidOption
            For another number.
        """
        option = self._option("numIOTiles")
        number = checks.whole_number(option, num_tiles)
        if number % 2 or not 32 <= number <= 192:
            raise AssertedOption(f"{option}: numIOTiles must be an even number between 32 and 192., got {number}")
        self._tell("numIOTiles")
        return self._keep(numIOTiles=number)

    def setActivationLocation(self, location: TensorLocationSettings) -> Self:
        """Say where activations are; here they are in the memory of tiles.

        Parameters
        ----------
        location:
            The place.

        Raises
        ------
        PoplarTypeError
            For what is no `TensorLocationSettings`.
        """
        return self._keep(location_activation=self._location("setActivationLocation", location))

    def setWeightLocation(self, location: TensorLocationSettings) -> Self:
        """Say where weights of a model in phases are between these, and from how many elements on; else they are on tiles.

        Parameters
        ----------
        location:
            The place. Without one weights of two elements and more are in streaming memory.

        Raises
        ------
        PoplarTypeError
            For what is no `TensorLocationSettings`.
        """
        return self._keep(location_weight=self._location("setWeightLocation", location, OF_PHASES))

    def setOptimizerLocation(self, location: TensorLocationSettings) -> Self:
        """Say where the states of optimisers are; here they are in the memory of tiles.

        Parameters
        ----------
        location:
            The place.

        Raises
        ------
        PoplarTypeError
            For what is no `TensorLocationSettings`.
        """
        return self._keep(location_optimizer=self._location("setOptimizerLocation", location))

    def setAccumulatorLocation(self, location: TensorLocationSettings) -> Self:
        """Say where accumulated gradients are; here they are in the memory of tiles.

        Parameters
        ----------
        location:
            The place.

        Raises
        ------
        PoplarTypeError
            For what is no `TensorLocationSettings`.
        """
        return self._keep(location_accumulator=self._location("setAccumulatorLocation", location))

    def _location(self, method: str, location: object, known: tuple[str, ...] = ()) -> dict[str, int]:
        if not isinstance(location, TensorLocationSettings):
            raise PoplarTypeError(f"{self._option(method)} takes poptorch.TensorLocationSettings, got {location!r}")
        values = location.toDict()
        without = {name: value for name, value in values.items() if name not in known and (name, value) != ("onChip", True)}
        self._tell(method, bool(without))
        return {name: int(value) for name, value in values.items()}
